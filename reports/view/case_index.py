"""Every case on one line, packed: what a page needs to search ten thousand of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.record import CaseRecord, Json, Outcome, PairRecord
from reports.load import Run
from reports.view.cells import in_words
from reports.view.looks import SEVERITY, State, worst
from reports.view.margins import COUNTED, severity
from reports.view.prompts import prompt_text
from reports.view.text import shortened, visible

EXCERPT = 72
"""Characters of the first prompt that can be searched and are shown."""
MAX_NOTE = 240
MAX_CASES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLine:
    """One case of one checkpoint."""

    case_id: str
    checkpoint: str
    task: str
    state: State
    """Its worst comparison."""
    lengths: str
    """Tokens of its prompts."""
    share: float
    """Largest value / bound of its comparisons; -1 where none has a bound."""
    over: str
    """What an infinite share means: `rank changed (0 allowed)`, `infinite`; else empty."""
    boundaries: tuple[str, ...]
    findings: tuple[str, ...]
    """Anchors of the findings that hold one of its comparisons."""
    excerpt: str
    note: str
    """Empty for a case that passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseIndex:
    """Worst first."""

    lines: tuple[CaseLine, ...]
    more: int

    @property
    def counts(self) -> Mapping[State, int]:
        counted = Counter(line.state for line in self.lines)
        return {state: counted[state] for state in SEVERITY if counted[state]}

    def packed(self) -> Json:
        """Columns of JSON data; words that repeat are written once and pointed at."""
        words: dict[str, int] = {}

        def at(word: str) -> int:
            return words.setdefault(word, len(words))

        rows = [
            [
                line.case_id,
                at(line.checkpoint),
                at(line.task),
                at(str(line.state)),
                line.lengths,
                float(f"{line.share:.3g}") if line.share < float("inf") else line.over,
                [at(b) for b in line.boundaries],
                [at(f) for f in line.findings],
                line.excerpt,
                line.note,
            ]
            for line in self.lines
        ]
        return {"words": list(words), "rows": rows}


def case_index(run: Run, anchors: Mapping[str, str]) -> CaseIndex:
    """`anchors`: finding id -> where it stands on the page."""
    pairs: dict[tuple[str, str], list[PairRecord]] = {}
    for pair in run.pairs:
        pairs.setdefault((pair.checkpoint, pair.case_id), []).append(pair)
    finding_of = {
        (f.checkpoint, p): anchors[f.finding_id]
        for f in run.findings
        for p in f.pairs
        if f.finding_id in anchors
    }
    lines = [_line(case, pairs.get(key, ()), finding_of) for key, case in run.cases.items()]
    lines.sort(
        key=lambda c: (SEVERITY.index(c.state), -min(c.share, 1e300), c.checkpoint, c.case_id)
    )
    return CaseIndex(lines=tuple(lines[:MAX_CASES]), more=max(0, len(lines) - MAX_CASES))


def _line(
    case: CaseRecord, pairs: Sequence[PairRecord], finding_of: Mapping[tuple[str, str], str]
) -> CaseLine:
    state = worst(p.outcome for p in pairs)
    prompts = case.case.get("prompts") or [""]
    lengths = [f"{n:,}" for n in case.lengths[:4]] + ["…"] * (len(case.lengths) > 4)
    return CaseLine(
        case_id=visible(case.case_id),
        checkpoint=visible(case.checkpoint),
        task=visible(case.task),
        state=state,
        lengths=" + ".join(lengths),
        share=max((severity(m.value, m.bound) for p in pairs for m in p.measurements), default=-1),
        over=visible(_over(pairs)),
        boundaries=tuple(visible(b) for b in dict.fromkeys(case.boundaries)),
        findings=tuple(
            dict.fromkeys(
                finding_of[p.checkpoint, p.pair_id]
                for p in pairs
                if (p.checkpoint, p.pair_id) in finding_of
            )
        ),
        excerpt=" ".join(prompt_text(prompts[0])[:EXCERPT].split()),
        note=visible(shortened(_note(state, pairs), MAX_NOTE)),
    )


def _over(pairs: Sequence[PairRecord]) -> str:
    over = [m for p in pairs for m in p.measurements if math.isinf(severity(m.value, m.bound))]
    counted = next((m for m in over if m.bound == 0 and math.isfinite(m.value)), None)
    if counted is not None:
        return f"{COUNTED.get(counted.metric, counted.metric)} (0 allowed)"
    return "infinite" if over else ""


def _note(state: State, pairs: Sequence[PairRecord]) -> str:
    if state not in (State.FAIL, State.ERROR, State.VACUOUS):
        return ""
    bad = [p for p in pairs if p.outcome == Outcome(str(state))]
    cells = dict.fromkeys(in_words(_changed(p)) or p.comparison for p in bad)
    return f"{len(bad):,} of {len(pairs):,} comparisons: {_several(cells)}"


def _changed(pair: PairRecord) -> dict[str, str]:
    return {k: v for k, v in pair.cell_b.items() if pair.cell_a.get(k) != v}


def _several(names: Iterable[str]) -> str:
    listed = list(names)
    more = f"; and {len(listed) - 2} more" if len(listed) > 2 else ""
    return "; ".join(listed[:2]) + more

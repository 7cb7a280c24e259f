"""Why comparisons were refused, could not act, proved nothing or broke: grouped, capped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.record import Outcome, PairRecord
from reports.load import Run
from reports.view.findings import unexplained
from reports.view.text import shape, shortened

MAX_GROUPS = 20
MAX_REASON_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Pairs whose reasons differ at most in numbers; `text` is the first of them, in full."""

    text: str
    pairs: int
    cases: int
    checkpoints: tuple[str, ...]
    axes: tuple[str, ...]
    pair_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Largest groups first; `more` groups were left out."""

    groups: tuple[Reason, ...]
    more: int
    pairs: int


def grouped(pairs: Iterable[PairRecord]) -> Reasons:
    """Group pairs by checkpoint-independent shape of their reason."""
    groups: dict[str, list[PairRecord]] = {}
    total = 0
    for pair in pairs:
        total += 1
        groups.setdefault(shape(pair.reason), []).append(pair)
    ordered = sorted(groups.values(), key=lambda g: (-len(g), g[0].reason))
    return Reasons(
        groups=tuple(_reason(group) for group in ordered[:MAX_GROUPS]),
        more=max(0, len(ordered) - MAX_GROUPS),
        pairs=total,
    )


def _reason(group: list[PairRecord]) -> Reason:
    first = group[0]
    return Reason(
        text=shortened(first.reason or "No reason was recorded.", MAX_REASON_CHARACTERS),
        pairs=len(group),
        cases=len({(p.checkpoint, p.case_id) for p in group}),
        checkpoints=tuple(dict.fromkeys(p.checkpoint for p in group)),
        axes=tuple(dict.fromkeys(axis for p in group for axis in p.axes)),
        pair_id=first.pair_id,
    )


def reasons_of(run: Run, outcome: Outcome) -> Reasons:
    return grouped(p for p in run.pairs if p.outcome is outcome)


def unexplained_failures(run: Run) -> Reasons:
    return grouped(unexplained(run))


def warnings(run: Run) -> tuple[tuple[str, int], ...]:
    """Warning text -> pairs that carry one like it, most frequent first, at most MAX_GROUPS."""
    groups: dict[str, tuple[str, int]] = {}
    for pair in run.pairs:
        for text in pair.warnings:
            first, n = groups.get(shape(text), (text, 0))
            groups[shape(text)] = (first, n + 1)
    return tuple(sorted(groups.values(), key=lambda g: (-g[1], g[0]))[:MAX_GROUPS])

"""Whether a fault shows where its record says, and hides where its record says.

The record is read after the verdict: cases are judged and explained first, as in any run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from harness.case import Case
from harness.faults.base import BASELINE, Fault
from harness.record import FindingRecord, PairRecord
from harness.search import Budget
from harness.trials.bench import TrialBench, fails
from harness.trials.kills import checks_of
from harness.trials.ledger import Ledger
from harness.trials.masks import MASKS
from harness.trials.spread import BenchKey, spread

MAX_CASES = 24
MASKED_CASES = 6
"""One case for each setting of the profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """One fault under one seed."""

    fault: str
    seed: int
    found: bool
    found_cases: int
    """Ordinary cases up to and including the first that fails, or all that were run."""
    found_seconds: float
    """Until then, on warm engines; generation and judging included."""
    cases: int
    """Up to the one that was explained: the first that fails by numbers, and not by luck."""
    seconds: float
    """Until it was explained."""
    said: tuple[str, ...]
    """What the findings name, `a=b AND c=d`; `baseline` where the baseline itself is wrong."""
    recorded: tuple[str, ...]
    agrees: bool
    """Everything that was said is recorded, and something was said."""
    not_hidden: tuple[str, ...]
    """Masks of the record under which a comparison still failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One fault under one seed, to be asked in a worker."""

    fault: Fault
    seed: int

    @property
    def bench(self) -> BenchKey:
        return BenchKey(self.fault.checkpoint, axes=self.fault.axes)


class Unanswered(NamedTuple):
    """A question that got no answer."""

    fault: str
    seed: int
    why: str


def check_conditions(
    faults: Sequence[Fault], seeds: Sequence[int], ledger: Ledger, *, workers: int
) -> Iterator[Mapping[str, Any] | Unanswered]:
    """Each fault under each seed, as it is known; what the ledger holds is not run again.

    The first seed of every fault before the second of any: a trial that is cut short tells most.
    """
    questions = [
        Question(fault=fault, seed=seed)
        for seed in seeds
        for fault in faults
        if not ledger.holds(fault=fault.name, seed=seed)
    ]
    for done in spread(questions, answered, workers=workers):
        if done.result is None:
            yield Unanswered(done.trial.fault.name, done.trial.seed, done.lost)
            continue
        row = asdict(done.result)
        ledger.append(row)
        yield row


def answered(bench: TrialBench, question: Question) -> Conditions:
    """What a worker makes of one question."""
    with bench.planted(question.fault.plugin):
        return _checked(bench, question.fault, question.seed)


def _checked(bench: TrialBench, fault: Fault, seed: int) -> Conditions:
    began = time.perf_counter()
    cases = bench.cases(seed)
    first, number, findings = _first_explained(bench, cases)
    elapsed = time.perf_counter() - began
    said = sorted({told(values) for finding in findings for values in finding.minimal_sets})
    said += ["baseline"] if any("kind=baseline" in f.signature for f in findings) else []
    return Conditions(
        fault=fault.name,
        seed=seed,
        found=first is not None,
        found_cases=number if first is None else first.cases,
        found_seconds=round(elapsed if first is None else first.moment - began, 3),
        cases=number,
        seconds=round(elapsed, 2),
        said=tuple(dict.fromkeys(said)),
        **_held(said, fault),
        not_hidden=tuple(m for m in fault.masked_by if not _hides(bench, cases, m)),
    )


def _held(said: Sequence[str], fault: Fault) -> dict[str, Any]:
    """What was said beside the record."""
    recorded = tuple(sorted(told(values) for values in fault.exposed_by))
    return {"recorded": recorded, "agrees": bool(said) and set(said) <= set(recorded)}


def held_to_record(row: Mapping[str, Any], fault: Fault) -> Mapping[str, Any]:
    """A stored row beside the record as it is now: what is mended there need not be run again."""
    return {**row, **_held(row["said"], fault)}


class First(NamedTuple):
    """The first case that failed, whatever it failed by."""

    cases: int
    moment: float
    """Of the clock that measures performance, in seconds."""


def _first_explained(
    bench: TrialBench, cases: Sequence[Case]
) -> tuple[First | None, int, list[FindingRecord]]:
    number, first = 0, None
    for number, case in enumerate(cases[:MAX_CASES], start=1):
        settings = bench.settings[(number - 1) % len(bench.settings)]
        # Which cells fail under real threads is luck, and luck is no condition; it is a detection.
        lucky = settings["stream_policy"] == "threaded"
        if lucky and first is not None:
            continue
        executed, pairs = bench.judged(case, settings)
        if first is None and fails(pairs):
            first = First(number, time.perf_counter())
        if lucky or not _by_numbers(pairs):
            continue
        found = bench.findings(executed, pairs, Budget(calls=1500, seconds=60.0))
        return first, number, [f for f in found if "kind=happens-before" not in f.signature]
    return first, number, []


def _by_numbers(pairs: Sequence[PairRecord]) -> bool:
    """Of the case itself: a relation's follow-up is another case, with no mask on it."""
    return any(set(checks_of(p)) - {"happens-before", "error", "relation"} for p in pairs)


def _hides(bench: TrialBench, cases: Sequence[Case], name: str) -> bool:
    mask = MASKS[name]
    for index, case in enumerate(cases[:MASKED_CASES]):
        changed = mask.change(bench.as_tokens(case))
        if changed is None:
            continue
        settings = mask.settings or bench.settings[index % len(bench.settings)]
        _, pairs = bench.judged(changed, settings)
        if _by_numbers([p for p in pairs if mask.looks_at(p.cell_a) and mask.looks_at(p.cell_b)]):
            return False
    return True


def told(values: Sequence[str] | frozenset[str]) -> str:
    """`chunk=chunked AND pp=2`; `baseline` for no switch at all."""
    return " AND ".join(sorted(values)) if frozenset(values) != BASELINE else "baseline"

"""Whether a fault shows where its record says, and hides where its record says.

The record is read after the verdict: cases are judged and explained first, as in any run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.case import Case
from harness.faults.base import BASELINE, Fault
from harness.record import FindingRecord, PairRecord
from harness.search import Budget
from harness.trials.bench import TrialBench
from harness.trials.kills import checks_of
from harness.trials.ledger import Ledger
from harness.trials.masks import MASKS

MAX_CASES = 24
MASKED_CASES = 6
"""One case for each setting of the profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """One fault under one seed."""

    fault: str
    seed: int
    cases: int
    """Ordinary cases up to the one that was explained; the first that fails by numbers."""
    seconds: float
    said: tuple[str, ...]
    """What the findings name, `a=b AND c=d`; `baseline` where the baseline itself is wrong."""
    recorded: tuple[str, ...]
    agrees: bool
    """Everything that was said is recorded, and something was said."""
    not_hidden: tuple[str, ...]
    """Masks of the record under which a comparison still failed."""


def check_conditions(
    bench: TrialBench, ledger: Ledger, faults: Sequence[Fault], seeds: Sequence[int]
) -> Iterator[Mapping[str, Any]]:
    """Each fault under each seed, as it is known; what the ledger holds is not run again."""
    for fault in faults:
        for seed in seeds:
            if ledger.holds(fault=fault.name, seed=seed):
                continue
            with bench.planted(fault.plugin):
                row = asdict(_checked(bench, fault, seed))
            ledger.append(row)
            yield row


def _checked(bench: TrialBench, fault: Fault, seed: int) -> Conditions:
    began = time.perf_counter()
    cases = bench.cases(seed)
    number, findings = _first_explained(bench, cases)
    elapsed = time.perf_counter() - began
    said = sorted({told(values) for finding in findings for values in finding.minimal_sets})
    said += ["baseline"] if any("kind=baseline" in f.signature for f in findings) else []
    recorded = tuple(sorted(told(values) for values in fault.exposed_by))
    return Conditions(
        fault=fault.name,
        seed=seed,
        cases=number,
        seconds=round(elapsed, 2),
        said=tuple(dict.fromkeys(said)),
        recorded=recorded,
        agrees=bool(said) and set(said) <= set(recorded),
        not_hidden=tuple(m for m in fault.masked_by if not _hides(bench, cases, m)),
    )


def _first_explained(bench: TrialBench, cases: Sequence[Case]) -> tuple[int, list[FindingRecord]]:
    number = 0
    for number, case in enumerate(cases[:MAX_CASES], start=1):
        settings = bench.settings[(number - 1) % len(bench.settings)]
        if settings["stream_policy"] == "threaded":
            continue  # which cells fail there is luck, and luck is no condition
        executed, pairs = bench.judged(case, settings)
        if not _by_numbers(pairs):
            continue
        found = bench.findings(executed, pairs, Budget(calls=1500, seconds=60.0))
        return number, [f for f in found if "kind=happens-before" not in f.signature]
    return number, []


def _by_numbers(pairs: Sequence[PairRecord]) -> bool:
    return any(set(checks_of(pair)) - {"happens-before", "error"} for pair in pairs)


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

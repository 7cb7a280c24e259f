"""Was everything judged that the run set out to judge? Combinations of values, boundary classes.

What was declared is recorded before the first case; what was reached is counted from the pairs that
were judged (PASS or FAIL), never from what was merely started.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.record import Comparison, DeclaredRecord, Outcome
from reports.load import Run
from reports.view.text import plural
from reports.view.verdict import judged_cases

WORDS = {1: "values", 2: "pairs of values", 3: "triples of values"}
MAX_MISSING = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Of one checkpoint: how many of the declared things of one kind were judged."""

    checkpoint: str
    what: str
    """`pairs of values that can start`, `boundary classes`"""
    judged: int
    declared: int
    missing: tuple[str, ...]
    cells: int = 0
    """Cells in which combinations of values were judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedOfAll:
    """The same over all checkpoints, in a sentence, and what is missing from whom."""

    sentence: str
    missing: tuple[str, ...]
    more_missing: int


def reached(run: Run) -> tuple[Reached, ...]:
    """One entry for each checkpoint and kind that was declared."""
    found: dict[tuple[str, str], Reached] = {}
    for record in run.declared:
        # Shards of one part declare the same.
        for entry in (_boundaries(run, record), _combinations(run, record)):
            if entry is not None:
                found[entry.checkpoint, entry.what] = entry
    return tuple(found.values())


def reached_of_all(run: Run) -> tuple[ReachedOfAll, ...]:
    """One sentence for each kind."""
    every = reached(run)
    kinds = dict.fromkeys(entry.what for entry in every)
    return tuple(_of_all(kind, [e for e in every if e.what == kind]) for kind in kinds)


def _of_all(kind: str, entries: list[Reached]) -> ReachedOfAll:
    judged, declared = sum(e.judged for e in entries), sum(e.declared for e in entries)
    # Never rounded up to the whole.
    share = 100 if judged == declared else min(99.9, int(1000 * judged / declared) / 10)
    where = plural(len(entries), "checkpoint")
    cells = [e.cells for e in entries if e.cells]
    by = f" in {min(cells)} to {max(cells)} cells each" if cells else ""
    missing = [f"{e.checkpoint}: {name}" for e in entries for name in e.missing]
    return ReachedOfAll(
        sentence=(
            f"{share:g} % of the declared {kind} were judged: {judged:,} of {declared:,}, over "
            f"{where}{by}."
        ),
        missing=tuple(missing[:MAX_MISSING]),
        more_missing=max(0, len(missing) - MAX_MISSING),
    )


def _boundaries(run: Run, record: DeclaredRecord) -> Reached | None:
    if not record.boundaries:
        return None
    judged = judged_cases(run)
    hit = {
        name
        for key, case in run.cases.items()
        if key in judged and case.checkpoint == record.checkpoint
        for name in case.boundaries
    }
    missing = tuple(name for name in record.boundaries if name not in hit)
    return Reached(
        checkpoint=record.checkpoint,
        what="boundary classes",
        judged=len(record.boundaries) - len(missing),
        declared=len(record.boundaries),
        missing=missing,
    )


def _combinations(run: Run, record: DeclaredRecord) -> Reached | None:
    if not record.combinations:
        return None
    baselines = {axis.name: axis.baseline for axis in run.manifest.axes}
    cells = {
        frozenset(cell.items())
        for pair in run.pairs
        if pair.checkpoint == record.checkpoint
        and pair.comparison is Comparison.BASELINE
        and pair.outcome in (Outcome.PASS, Outcome.FAIL)
        for cell in (pair.cell_a, pair.cell_b)
    }
    found: set[tuple[str, ...]] = set()
    for cell in cells:
        found.update(_of_cell(dict(cell), record, baselines))
    missing = [values for values in record.combinations if values not in found]
    kind = WORDS.get(record.strength, f"combinations of {record.strength} values")
    return Reached(
        checkpoint=record.checkpoint,
        what=f"{kind} of {len(record.axes)} axes that can start",
        judged=len(record.combinations) - len(missing),
        declared=len(record.combinations),
        missing=tuple(", ".join(values) for values in missing),
        cells=len(cells),
    )


def _of_cell(
    cell: Mapping[str, str], record: DeclaredRecord, baselines: Mapping[str, str]
) -> Iterable[tuple[str, ...]]:
    values = [f"{name}={cell.get(name, baselines.get(name, ''))}" for name in record.axes]
    return itertools.combinations(values, record.strength)

"""Shrinking a failing case while its signature stays what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.attribution.gap import furthest
from harness.attribution.laboratory import Laboratory
from harness.attribution.recorded import Failure
from harness.attribution.sets import Switches, cell_of, closure, switches
from harness.attribution.signature import FailureKind, is_racy
from harness.attribution.table import Table
from harness.axes import Cell, baseline, num_ranks
from harness.case import Case
from harness.record import Tier
from harness.search import Budget, Reducer, reduce_case
from harness.search.passes import alone
from harness.search.reducer import as_token_ids

SHRINKING = "shrinking"
"""What a budget counts the engine calls of each `shrink` under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """The smallest case that shows the same, and the whole truth about it."""

    case: Case
    table: Table
    reproduced: bool
    """Whether the case failed when it was run again."""
    complete: bool
    """Whether shrinking ended by itself, not by its budget."""


def shrink(
    failure: Failure,
    laboratory: Laboratory,
    *,
    cells: Sequence[Cell],
    chunk: int,
    budget: Budget,
) -> Shrunk:
    """Run the failure's case again; if it fails as recorded, make it small.

    A candidate is accepted only if the sets that were seen on the unshrunk case still fail, and if
    those that failed by more than a rounding still do: a bug that moves whole rows is not told by
    its last bit. So that the search cannot slip from one bug to another, the whole table of the
    result is checked at the end; where it shows other sets, the search begins again and asks of
    every candidate that the sets be minimal, and where even then a further set shows, it steps back
    along its accepted cases.
    """
    if budget.calls == 0:  # an engine that takes a minute to start, say: what was recorded must do
        return Shrunk(case=failure.case, table=failure.table, reproduced=False, complete=False)
    kind, settings = failure.table.kind, failure.settings
    limit = max((state.limit for state in failure.table.states.values()), default=0.0)
    racy = is_racy(settings, kind)

    def run(case: Case, chosen: Sequence[Cell]) -> Table:
        return laboratory.table(case, settings, chosen, kind, oracle_limit=limit)

    recorded = failure.table
    again = run(failure.case, cells if racy else needed_cells(kind, recorded.sets, recorded))
    if again.sets != recorded.sets and not (racy and again.sets):
        return Shrunk(case=failure.case, table=recorded, reproduced=False, complete=False)
    sets, plain = again.sets, plain_sets(again, laboratory)
    needed = needed_cells(kind, sets, again)

    def same_failure(table: Table) -> bool:
        if racy:  # which of the sets fails is luck
            return bool(table.sets)
        return table.sets == sets and plain <= plain_sets(table, laboratory)

    def reduced(proof: Sequence[Cell]) -> list[Case]:
        reducer = Reducer(
            failure.case, keeps=lambda case: same_failure(run(case, proof)), budget=budget
        )
        tokens, wrong = tokens_of(failure.case, laboratory), furthest_prompt(again)
        if wrong is None or not reducer.consider(alone(tokens, wrong)):
            reducer.consider(tokens)
        reduce_case(reducer, chunk=chunk)
        return reducer.accepted[1:]

    quick = failing_cells(sets, again)
    tries = (quick, needed) if kind is FailureKind.DIFFERENCE and not racy else (needed,)
    for attempt, proof in enumerate(tries, start=1):
        accepted = reduced(proof)
        complete = not budget.exhausted
        last = len(accepted) if attempt == len(tries) else 1
        for case in accepted[::-1][:last]:
            table = run(case, cells)
            if same_failure(table):
                return Shrunk(case=case, table=table, reproduced=True, complete=complete)
    table = again if racy else run(failure.case, cells)
    return Shrunk(case=failure.case, table=table, reproduced=True, complete=complete)


def failing_cells(sets: Sequence[Switches], table: Table) -> tuple[Cell, ...]:
    """The cell of each set, and the neighbour that it is wrong against where that is known."""
    cells = [cell_of(values) for values in sets]
    against = [state.against for c in cells if (state := table.states.get(c)) and state.against]
    return tuple(dict.fromkeys((*against, *cells)))


def furthest_prompt(table: Table) -> int | None:
    """The prompt that comes out most wrong in the smallest failing cell: worth trying by itself."""
    cell = table.smallest_bad
    if cell is None or table.kind is not FailureKind.DIFFERENCE:
        return None
    right = table.runs[table.states[cell].against or baseline()]
    return furthest(table.subject, right.outputs, table.runs[cell].outputs)


def plain_sets(table: Table, laboratory: Laboratory) -> frozenset[Switches]:
    """The minimal sets whose cells are off by more than the loosest tier allows."""
    if table.kind is not FailureKind.DIFFERENCE:
        return frozenset()
    prompts = range(len(table.subject.lengths))
    limit = max(laboratory.limits.limit(table.subject, Tier.KERNEL, i) for i in prompts)
    return frozenset(
        values
        for values in table.sets
        if (state := table.states.get(cell_of(values))) is not None
        and state.value is not None
        and state.value > limit
    )


def needed_cells(kind: FailureKind, sets: Sequence[Switches], table: Table) -> tuple[Cell, ...]:
    """The cells that prove the sets minimal: the sets and all their subsets."""
    if kind is FailureKind.EXECUTOR:
        smallest = table.smallest_bad
        chain = closure([frozenset()] if smallest is None else [_inline(smallest)])
        return tuple(cell for cell in chain if cell == baseline() or num_ranks(cell) > 1)
    return closure(sets)


def _inline(cell: Mapping[str, str]) -> Switches:
    return switches({name: value for name, value in cell.items() if name != "executor"})


def tokens_of(case: Case, laboratory: Laboratory) -> Case:
    """The case with every prompt as token ids, so that it can be cut anywhere."""
    prompts = laboratory.system.encode(case)
    return replace(
        case,
        prompts=tuple(
            as_token_ids(prompt, encoded.token_ids, encoded.type_ids)
            for prompt, encoded in zip(case.prompts, prompts, strict=True)
        ),
    )

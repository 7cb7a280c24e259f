"""The truth table: for each cell, whether the case fails there, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from harness.attribution.gap import Gap, Limits, gap
from harness.attribution.sets import Switches, masks, minimal_sets, nearest_first, switches
from harness.attribution.signature import FailureKind
from harness.axes import ALL_AXES, Cell, baseline, differing, inapplicable, tier_between
from harness.axes.overlap import cannot_overlap
from harness.judge.metrics import error
from harness.judge.output import Outputs
from harness.judge.subject import Execution, Subject
from harness.record import Outcome, TruthRow

APART = {"executor": "processes"}
"""What is added to a cell's values where its ranks ran as processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellState:
    """What one cell does to a case."""

    cell: Cell
    bad: bool
    value: float | None
    """The finding's metric; None when there is nothing to measure."""
    limit: float = 0.0
    against: Cell | None = None
    """The neighbour it differs from, where that is not the baseline."""
    error: str = ""
    unreachable: str = ""
    """Why an axis of the cell cannot act on this case, known before the run."""
    note: str = ""

    @property
    def good(self) -> bool:
        """Ran, and did not fail."""
        return not self.bad and not self.error

    @property
    def passed(self) -> bool:
        """Good, and every axis of the cell could act: what PASS says. Only that hides a failure."""
        return self.good and not self.unreachable

    @property
    def row(self) -> TruthRow:
        """The record of this line."""
        if self.error:
            return TruthRow(
                cell=dict(self.cell), outcome=Outcome.ERROR, value=None, note=self.error
            )
        outcome = Outcome.FAIL if self.bad else Outcome.PASS
        if not self.bad and self.unreachable:
            outcome = Outcome.INAPPLICABLE
        note = self.note or self.unreachable
        return TruthRow(cell=dict(self.cell), outcome=outcome, value=self.value, note=note)


@dataclass(slots=True)
class Table:
    """Owns: the states of one case's cells under one kind of failure, and the runs behind them."""

    subject: Subject
    kind: FailureKind
    states: dict[Cell, CellState] = field(default_factory=dict)
    runs: dict[Cell, Execution] = field(default_factory=dict)

    @property
    def bad(self) -> tuple[Cell, ...]:
        return tuple(cell for cell, state in self.states.items() if state.bad)

    @property
    def sets(self) -> tuple[Switches, ...]:
        """Minimal failing sets."""
        if self.kind is FailureKind.EXECUTOR and self.bad:
            # The same cell is right in one process; only a cell of several ranks can be spread.
            return (switches(APART),)
        return minimal_sets(self.bad)

    @property
    def masks(self) -> frozenset[str]:
        """What hides the failure: a cell where an axis could not act shows nothing of it."""
        passed = [cell for cell, state in self.states.items() if state.passed]
        return masks(self.bad, passed)

    @property
    def rows(self) -> tuple[TruthRow, ...]:
        return tuple(self.states[cell].row for cell in nearest_first(self.states))

    @property
    def worst(self) -> CellState | None:
        """The bad cell with the largest value."""
        failing = [self.states[cell] for cell in self.bad]
        return max(failing, key=lambda s: -1.0 if s.value is None else s.value, default=None)

    @property
    def smallest_bad(self) -> Cell | None:
        """A bad cell with the fewest values that are not the baseline's."""
        return next(iter(nearest_first(self.bad)), None)


def hazards_of(run: Execution) -> tuple[str, ...]:
    """What the happens-before check of every rank reported."""
    return tuple(
        f"rank {rank.get('rank')}: {hazard}"
        for rank in run.witness.get("ranks") or ()
        for hazard in rank.get("hazards") or ()
    )


def unreachable(subject: Subject, reference: Execution, run: Execution) -> str:
    """Why an axis of the cell cannot act on the case; empty when all can."""
    return (
        inapplicable(reference.cell, run.cell, subject.lengths, reference.plan, run.plan)
        or cannot_overlap(run.cell, run.settings)
        or ""
    )


Verdicts = Mapping[tuple[Cell, Cell], bool]
"""(Nearer, farther cell) -> whether the judge failed that pair by its numbers."""


def state_of(table: Table, run: Execution, limits: Limits, verdicts: Verdicts) -> CellState:
    """What `run` shows of its cell, given the nearer cells that the table already holds.

    Where `verdicts` is silent the search's own rule decides (`gap`).
    """
    cell, reference = Cell.of(run.cell), table.runs.get(baseline())
    if run.error or reference is None or reference.error:
        reason = run.error or "the baseline did not run"
        return CellState(cell=cell, bad=False, value=None, error=reason)
    reach = unreachable(table.subject, reference, run)
    if table.kind is FailureKind.HAZARD:
        found = hazards_of(run)
        return CellState(
            cell=cell,
            bad=bool(found),
            value=float(len(found)),
            unreachable=reach,
            note=found[0] if found else "",
        )
    return _difference(table, run, limits, reach, verdicts)


def _difference(
    table: Table, run: Execution, limits: Limits, reach: str, verdicts: Verdicts
) -> CellState:
    cell, reference = Cell.of(run.cell), table.runs[baseline()]
    found = _between(table.subject, reference, run, limits)
    bad = verdicts.get((baseline(), cell), found.differs)
    note, against = found.note if bad else "", None
    for name in () if bad else differing(reference.cell, cell):
        near = cell.with_value(name, ALL_AXES[name].baseline)
        state = table.states.get(near)
        if near == baseline() or state is None or not state.good:
            continue
        along = _between(table.subject, table.runs[near], run, limits)
        if verdicts.get((near, cell), along.differs):
            bad, found, against = True, along, near
            note = f"differs from its neighbour without {name}={cell[name]}: {along.note}"
            break
    return CellState(
        cell=cell,
        bad=bad,
        value=found.value,
        limit=found.limit,
        against=against,
        unreachable=reach,
        note=note or ("baseline" if cell == baseline() else ""),
    )


def _between(subject: Subject, a: Execution, b: Execution, limits: Limits) -> Gap:
    tier = tier_between(differing(a.cell, b.cell), a.witness, b.witness)
    return gap(subject, tier, a.outputs, b.outputs, limits)


def recorded_table(
    subject: Subject,
    kind: FailureKind,
    runs: Iterable[Execution],
    limits: Limits,
    verdicts: Verdicts = MappingProxyType({}),
) -> Table:
    """The table of runs that were made already, the whole of it at once."""
    table, by_cell = Table(subject, kind), {Cell.of(run.cell): run for run in runs}
    for cell in nearest_first(by_cell):
        table.runs[cell] = by_cell[cell]
        table.states[cell] = state_of(table, by_cell[cell], limits, verdicts)
    return table


def apart_state(subject: Subject, inline: Execution, apart: Execution, limits: Limits) -> CellState:
    """A cell with its ranks as processes against the same cell in one process."""
    cell = Cell.of({**inline.cell, **APART})
    failed = inline.error or apart.error
    if failed:
        return CellState(cell=cell, bad=False, value=None, error=failed)
    found = _between(subject, inline, apart, limits)
    own = () if hazards_of(inline) else hazards_of(apart)
    return CellState(
        cell=cell,
        bad=found.differs or bool(own),
        value=found.value,
        limit=found.limit,
        note=found.note or "".join(own[:1]),
    )


def oracle_state(subject: Subject, run: Execution, oracle: Outputs, limit: float) -> CellState:
    """The baseline against float64; `limit` is what the judge held it to."""
    cell = Cell.of(run.cell)
    if run.error:
        return CellState(cell=cell, bad=False, value=None, error=run.error)
    same = [o.shape for o in run.outputs] == [o.shape for o in oracle]
    value = (
        max(error(subject.kind, x, o) for x, o in zip(run.outputs, oracle, strict=True))
        if same
        else float("inf")
    )
    return CellState(cell=cell, bad=not value <= limit, value=value, limit=limit)

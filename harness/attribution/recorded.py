"""The failures of a judged checkpoint, case by case and kind by kind, from its records alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.attribution.gap import Limits
from harness.attribution.sets import minimal_sets, nearest_first
from harness.attribution.signature import (
    ANY_POLICY,
    OWN_POLICY,
    FailureKind,
    Signature,
    is_racy,
    level_of,
)
from harness.attribution.table import (
    APART,
    CellState,
    Table,
    apart_state,
    recorded_table,
)
from harness.axes import Cell, baseline
from harness.campaign.judging import Executed
from harness.campaign.outputs import OutputStore
from harness.campaign.recorder import MARKS
from harness.case import Case, case_from_json
from harness.judge.subject import Execution, Subject
from harness.record import Comparison, ExecutionRecord, Outcome, PairRecord

_HAZARD = re.compile(r"side [AB] \([^)]*\): happens-before: ")
"""How the judge tells of a hazard: after what the numbers showed, or alone."""


def has_hazard(pair: PairRecord) -> bool:
    """Whether the happens-before check has something against one of the pair's sides."""
    return _HAZARD.search(pair.reason) is not None


def is_hazard_only(pair: PairRecord) -> bool:
    """Whether the pair failed by the happens-before check and by nothing else."""
    return _HAZARD.match(pair.reason) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One case that fails in one way."""

    case: Case
    lengths: tuple[int, ...]
    settings: Mapping[str, str]
    """Stream policy and inputs; no executor."""
    table: Table
    pairs: tuple[PairRecord, ...]

    @property
    def size(self) -> tuple[int, int, str]:
        """Smaller cases are cheaper to search and easier to read; the id makes the order total."""
        return sum(self.lengths), len(self.lengths), self.case.case_id


@dataclass(slots=True)
class Group:
    """Owns: the failures that share a signature, as far as the records tell."""

    signature: Signature
    failures: list[Failure] = field(default_factory=list)

    @property
    def smallest_first(self) -> list[Failure]:
        return sorted(self.failures, key=lambda failure: failure.size)


def grouped(
    cases: Sequence[Executed],
    pairs: Sequence[PairRecord],
    *,
    dtype: str,
    store: OutputStore,
    limits: Limits,
) -> list[Group]:
    """Failures by signature. Those that depend on luck are one group: their sets vary by run."""
    by_case: dict[str, list[PairRecord]] = defaultdict(list)
    for pair in pairs:
        by_case[pair.case_id].append(pair)
    groups: dict[Signature, Group] = {}
    for executed in cases:
        judged = by_case.get(executed.case.case_id, [])
        if not any(pair.outcome is Outcome.FAIL for pair in judged):
            continue
        for failure in failures_of(executed, judged, dtype=dtype, store=store, limits=limits):
            key = _signature(executed, failure)
            groups.setdefault(key, Group(key)).failures.append(failure)
    for group in groups.values():
        if not group.signature.sets:  # racy: a cell is bad if it was in any case
            bad = [cell for failure in group.failures for cell in failure.table.bad]
            group.signature = replace(group.signature, sets=minimal_sets(bad))
    return list(groups.values())


def _signature(executed: Executed, failure: Failure) -> Signature:
    kind = failure.table.kind
    racy = is_racy(failure.settings, kind)
    policy = failure.settings.get("stream_policy", OWN_POLICY)
    return Signature(
        checkpoint=executed.case.checkpoint,
        level=level_of(executed.case.task),
        kind=kind,
        sets=() if racy else failure.table.sets,
        policy=ANY_POLICY if kind is FailureKind.HAZARD else policy,
    )


def failures_of(
    executed: Executed,
    pairs: Sequence[PairRecord],
    *,
    dtype: str,
    store: OutputStore,
    limits: Limits,
) -> Iterator[Failure]:
    """The ways in which one case fails: at most one for each kind."""
    case = case_from_json(executed.case.case)
    subject = Subject.of(
        case, checkpoint=executed.case.checkpoint, dtype=dtype, lengths=executed.case.lengths
    )
    failed = [pair for pair in pairs if pair.outcome is Outcome.FAIL]
    inline = [
        _execution(record, store)
        for record in executed.executions
        if record.cell  # else it is the oracle's or its twin's
        and record.settings.get("executor") != "processes"
        and not {*MARKS} & {*record.settings}
    ]
    apart = [
        _execution(record, store)
        for record in executed.executions
        if record.settings.get("executor") == "processes"
    ]
    settings = _settings(inline)
    wrong = _baseline_table(subject, inline, failed)
    # A wrong baseline may break a rule of its own, such as a norm of 1: then every pair with it is
    # a FAIL, be its bits the same or not. What differs from it is the search's to say.
    verdicts = {} if wrong.bad else _verdicts(pairs)
    different = recorded_table(subject, FailureKind.DIFFERENCE, inline, limits, verdicts)
    tables = (
        recorded_table(subject, FailureKind.HAZARD, inline, limits),
        different,
        _apart_table(subject, inline, apart, limits),
        wrong,
    )
    for table in tables:
        # Pairs that fail and do not differ are the wrong baseline's.
        all_its = table is wrong and not different.bad
        mine = tuple(p for p in failed if _explains(table, p) or (all_its and _lattice(p)))
        if table.bad and mine:
            yield Failure(
                case=case,
                lengths=executed.case.lengths,
                settings=settings,
                table=table,
                pairs=mine,
            )


def _explains(table: Table, pair: PairRecord) -> bool:
    """Whether the failing pair belongs to what this table shows."""
    touched = any(Cell.of(side) in table.bad for side in (pair.cell_a, pair.cell_b) if side)
    oracle, setting = (
        pair.comparison is Comparison.ORACLE,
        pair.comparison is Comparison.SETTING,
    )
    match table.kind:
        case FailureKind.HAZARD:
            return has_hazard(pair)
        case FailureKind.BASELINE:
            return oracle
        case FailureKind.EXECUTOR:
            return setting and Cell.of({**pair.cell_b, **APART}) in table.bad
        case FailureKind.DIFFERENCE:
            by_numbers = not is_hazard_only(pair)
            return _lattice(pair, hazards=True) and (touched or by_numbers)


def _lattice(pair: PairRecord, *, hazards: bool = False) -> bool:
    """Whether the pair compares two cells; one that fails by a hazard alone only if asked for."""
    lattice = pair.comparison in (Comparison.BASELINE, Comparison.EDGE)
    return lattice and (hazards or not is_hazard_only(pair))


def _verdicts(pairs: Iterable[PairRecord]) -> dict[tuple[Cell, Cell], bool]:
    """(Nearer, farther cell) -> whether the judge failed the pair by numbers, where it looked."""
    found = {}
    for pair in pairs:
        looked = pair.outcome in (Outcome.PASS, Outcome.FAIL)
        if looked and pair.comparison in (Comparison.BASELINE, Comparison.EDGE):
            near, far = nearest_first((Cell.of(pair.cell_a), Cell.of(pair.cell_b)))
            found[near, far] = pair.outcome is Outcome.FAIL and not is_hazard_only(pair)
    return found


def _apart_table(
    subject: Subject, inline: Sequence[Execution], apart: Sequence[Execution], limits: Limits
) -> Table:
    table = Table(subject, FailureKind.EXECUTOR)
    by_cell = {Cell.of(run.cell): run for run in inline}
    for run in apart:
        partner = by_cell.get(Cell.of(run.cell))
        if partner is not None:
            key = Cell.of({**run.cell, **APART})
            table.runs[key] = run
            table.states[key] = apart_state(subject, partner, run, limits)
    return table


def _baseline_table(
    subject: Subject, inline: Sequence[Execution], failed: Sequence[PairRecord]
) -> Table:
    """The judge's own word: its bound for the baseline is not the search's to know."""
    table = Table(subject, FailureKind.BASELINE)
    start = baseline()
    for pair in failed:
        if pair.comparison is not Comparison.ORACLE:
            continue
        measured = next((m for m in pair.measurements if m.metric == "oracle_error"), None)
        for run in inline:
            if Cell.of(run.cell) == start:
                table.runs[start] = run
        table.states[start] = CellState(
            cell=start,
            bad=True,
            value=None if measured is None else measured.value,
            limit=0.0 if measured is None or measured.bound is None else measured.bound,
            note=pair.reason,
        )
    return table


def _settings(runs: Sequence[Execution]) -> dict[str, str]:
    return {k: v for run in runs[:1] for k, v in run.settings.items() if k not in APART}


def _execution(record: ExecutionRecord, store: OutputStore) -> Execution:
    return Execution(
        execution_id=record.execution_id,
        cell=Cell.of(record.cell),
        settings=record.settings,
        outputs=store.read(record.outputs) if record.outputs else (),
        witness=record.witness,
        plan=record.plan or (),
        error=record.error,
    )

"""Running cases again: only the cells that are asked for, on recorded plans, as a campaign does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from harness.attribution.gap import Limits
from harness.attribution.sets import nearest_first
from harness.attribution.signature import FailureKind, is_racy
from harness.attribution.table import (
    APART,
    CellState,
    Table,
    apart_state,
    oracle_state,
    state_of,
)
from harness.axes import Cell, Plan, baseline, inline, num_ranks, plan_key
from harness.case import Case
from harness.judge.output import Output
from harness.judge.subject import Execution, Subject
from harness.search.budget import Budget
from harness.systems.base import Encoded, Refused, System

RACY_ATTEMPTS = 5
"""Tries of a cell whose failure depends on real concurrency, as many as a profile gives overlap."""


class Oracle(Protocol):
    """float64 answers to a case."""

    def outputs(self, case: Case, prompts: Sequence[Encoded]) -> tuple[Output, ...]:
        """One per prompt."""
        ...


class Laboratory:
    """Owns: nothing but its count of engine calls, in the budget. Makes truth tables of cases."""

    def __init__(
        self,
        *,
        system: System,
        checkpoint: str,
        limits: Limits,
        budget: Budget,
        oracle: Oracle | None = None,
        attempts: int = RACY_ATTEMPTS,
    ) -> None:
        self.system, self.checkpoint, self.limits = system, checkpoint, limits
        self._budget, self._oracle = budget, oracle
        self.attempts = attempts
        """Tries of a cell whose failure depends on real concurrency."""
        self._opened: set[tuple[Cell, tuple[tuple[str, str], ...]]] = set()

    def within(self, budget: Budget) -> Laboratory:
        """The same laboratory on another budget."""
        return self._like(budget=budget, attempts=self.attempts)

    def once(self) -> Laboratory:
        """The same laboratory, which runs even a racy cell once."""
        return self._like(budget=self._budget, attempts=1)

    def forget(self, settings: Mapping[str, str]) -> None:
        """Close the inline instances opened under settings which will not come again."""
        gone = {key for key in self._opened if key[1] == _key(inline(settings))}
        for cell, chosen in gone:
            self.system.discard(cell, dict(chosen))
        self._opened -= gone

    def _like(self, *, budget: Budget, attempts: int) -> Laboratory:
        return Laboratory(
            system=self.system,
            checkpoint=self.checkpoint,
            limits=self.limits,
            budget=budget,
            oracle=self._oracle,
            attempts=attempts,
        )

    def subject(self, case: Case, prompts: Sequence[Encoded]) -> Subject:
        """The case as the judge sees it."""
        return Subject.of(
            case,
            checkpoint=self.checkpoint,
            dtype=self.system.dtype,
            lengths=tuple(len(prompt.token_ids) for prompt in prompts),
        )

    def table(
        self,
        case: Case,
        settings: Mapping[str, str],
        cells: Sequence[Cell],
        kind: FailureKind,
        *,
        oracle_limit: float = 0.0,
    ) -> Table:
        """Run the case in these cells and say which fail.

        The baseline always runs, and so does the cell whose plan those of its chunk value replay:
        the one that differs from the baseline in nothing else. A racy cell is run again until it
        fails, up to the laboratory's attempts.
        """
        prompts = self.system.encode(case)
        table = Table(self.subject(case, prompts), kind)
        alone = inline(settings)
        attempts = self.attempts if is_racy(settings, kind) else 1
        plans: dict[tuple[str, ...], Plan] = {}
        wanted = {Cell.of(_without_executor(cell)) for cell in cells}
        wanted |= {baseline().with_value("chunk", cell["chunk"]) for cell in wanted} | {baseline()}
        if kind is FailureKind.BASELINE:
            wanted = {baseline()}
        for cell in nearest_first(wanted):
            for _ in range(attempts):
                run = self.run(case, prompts, cell, alone, plans.get(plan_key(cell)))
                if run is None:
                    break  # this system cannot run there
                if not run.error:
                    plans.setdefault(plan_key(cell), run.plan)
                table.runs[cell] = run
                table.states[cell] = self._state(table, case, prompts, run, oracle_limit)
                if table.states[cell].bad:
                    break
        if kind is FailureKind.EXECUTOR:
            return self._apart(table, case, prompts, settings, plans, attempts)
        return table

    def _state(
        self,
        table: Table,
        case: Case,
        prompts: Sequence[Encoded],
        run: Execution,
        oracle_limit: float,
    ) -> CellState:
        if table.kind is not FailureKind.BASELINE:
            return state_of(table, run, self.limits, {})
        if self._oracle is None:
            raise ValueError("a baseline is held against float64: the laboratory needs an oracle")
        truth = self._oracle.outputs(case, prompts)
        return oracle_state(table.subject, run, truth, oracle_limit)

    def _apart(
        self,
        inline: Table,
        case: Case,
        prompts: Sequence[Encoded],
        settings: Mapping[str, str],
        plans: Mapping[tuple[str, ...], Plan],
        attempts: int,
    ) -> Table:
        """Every cell of several ranks in processes of its own, against the same cell inline."""
        table = Table(inline.subject, FailureKind.EXECUTOR)
        for cell, run in inline.runs.items():
            if num_ranks(cell) == 1:
                continue
            key = Cell.of({**cell, **APART})
            for _ in range(attempts):
                apart = self.run(
                    case, prompts, cell, {**settings, **APART}, plans.get(plan_key(cell))
                )
                if apart is None:
                    break
                table.runs[key] = apart
                table.states[key] = apart_state(table.subject, run, apart, self.limits)
                if table.states[key].bad:
                    break
        return table

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        cell: Cell,
        settings: Mapping[str, str],
        plan: Plan | None,
    ) -> Execution | None:
        """One run; None where the system refuses the cell. What it raises is its answer."""
        self._budget.spend()
        try:
            session = self.system.open(cell, settings)
            self._opened.add((cell, _key(settings)))
        except Refused:
            return None
        try:
            run = session.run(case, prompts, plan=plan)
        except Exception as failure:  # noqa: BLE001 - whatever a system raises is its verdict
            self.system.discard(cell, settings)
            return Execution(
                execution_id="",
                cell=cell,
                settings=settings,
                error=f"{type(failure).__name__}: {failure}",
            )
        return Execution(
            execution_id="",
            cell=cell,
            settings=settings,
            outputs=run.outputs,
            witness=run.witness,
            plan=run.plan,
        )


def _key(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(settings.items()))


def _without_executor(cell: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in cell.items() if name not in APART}

"""Running cases: every cell of the lattice, each on its recorded plan, as records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.axes import (
    AXES,
    Axis,
    Cell,
    Plan,
    Startable,
    baseline,
    coverage,
    covering,
    idle,
    inline,
    lattice,
    leave_one_off,
    num_ranks,
    plan_key,
    select,
)
from harness.campaign.outputs import OutputStore
from harness.campaign.perturb import LONE, PERTURBATIONS, Places, lone_tokens, perturbed, written
from harness.campaign.profile import CheckpointPlan
from harness.campaign.recorder import ORACLE, TWIN, Clock, Recorder, as_one_of, message
from harness.campaign.reference import CaseReference
from harness.campaign.relate import Relator
from harness.case import Case
from harness.record import (
    CaseEndRecord,
    CaseRecord,
    DeclaredRecord,
    ExecutionRecord,
    NoticeRecord,
    Record,
    RefusalRecord,
)
from harness.relations import FollowUp
from harness.strategies.lengths import boundaries_of
from harness.systems.base import Encoded, Refused, Selective, System


class CaseExecutor:
    """Owns: the recorded plan of the case at hand. Runs cases of one checkpoint on one system."""

    def __init__(
        self,
        *,
        checkpoint: CheckpointPlan,
        system: System,
        reference: CaseReference,
        twin: CaseReference | None = None,
        store: OutputStore,
        attempts: int,
        reach: int | None = None,
        axes: Sequence[str] | None = None,
        clock: Clock | None = None,
        relator: Relator | None = None,
        cover: int = 0,
        production: Mapping[str, str] | None = None,
    ) -> None:
        """`cover`: instead of the lattice, cells in which any so many values occur together.
        `production`: instead of it, this configuration and it with one axis at a time at rest.
        `reach`: how far before a prompt's last token a change must show in it; None: anywhere.
        """
        self._checkpoint, self._system = checkpoint, system
        self._reference, self._twin = reference, twin
        self._reach = reach
        chosen = select(axes)
        self._axes, self._cover = chosen, cover
        self._startable = _startable(system, chosen) if cover and not production else None
        self._cells = _cells(chosen, cover, production, self._startable)
        self._refused: dict[Cell, str] = {}
        self.clock = clock or Clock()
        self._recorder = Recorder(
            checkpoint=checkpoint.name,
            system=system,
            store=store,
            attempts=attempts,
            clock=self.clock,
        )
        self._relator = relator

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that can be started, baseline first."""
        return tuple(cell for cell in self._cells if cell not in self._refused)

    def start(self) -> Iterator[Record]:
        """Open every cell once; yields the refusals with the system's own reasons.

        A cell that fails otherwise stays: every case then records the failure as its own. Only when
        the baseline fails is there nothing to go on with, and its exception passes through.
        """
        began = time.perf_counter()
        for cell in self._cells:
            try:
                self._system.open(cell, inline(self._system.settings[0]))
            except Refused as refusal:
                self._refused[cell] = str(refusal)
                yield RefusalRecord(
                    checkpoint=self._checkpoint.name, cell=dict(cell), reason=str(refusal)
                )
            except Exception:
                if cell == self._cells[0]:
                    raise
        self.clock.add("start-up", time.perf_counter() - began)
        if self._cover:
            for values, reason in (self._startable.refused if self._startable else {}).items():
                cell = Cell.of({**baseline(), **dict(values)})
                yield RefusalRecord(
                    checkpoint=self._checkpoint.name, cell=dict(cell), reason=reason
                )
            found = coverage(self.cells, self._axes, self._cover, self._startable)
            yield NoticeRecord(text=f"{self._checkpoint.name}: {found}")
            yield self._declared()

    def _declared(self) -> DeclaredRecord:
        every = Startable(self._axes, lambda cell: None)  # noqa: ARG005
        known = (self._startable or every).combinations(self._cover)
        return DeclaredRecord(
            checkpoint=self._checkpoint.name,
            strength=self._cover,
            axes=tuple(axis.name for axis in self._axes),
            combinations=tuple(
                tuple(f"{name}={value}" for name, value in values) for values in sorted(known)
            ),
        )

    def run(
        self,
        case: Case,
        settings: Mapping[str, str],
        *,
        cells: Sequence[Cell] | None = None,
        processes: bool = False,
    ) -> Iterator[Record]:
        """One case in every cell, the oracle's answer and the perturbed baselines.

        `cells`: only these, the baseline first. `processes`: also run the cells of several
        ranks with one process a rank.
        """
        cells = self.cells if cells is None else cells
        alone = inline(settings)
        try:
            prompts = self._system.encode(case)
        except Exception as failure:  # noqa: BLE001 - whatever a system raises is its verdict
            yield from self._unreadable(case, alone, message(failure))
            yield self._ended(case)
            return
        yield from self._begun(case, prompts)
        plans: dict[tuple[str, ...], Plan] = {}
        succeeded: dict[Cell, ExecutionRecord] = {}
        for cell in cells:
            record = self._recorder.run(case, prompts, cell, alone, plans.get(plan_key(cell)))
            if not record.error:
                plans.setdefault(plan_key(cell), record.plan)
                succeeded[cell] = record
            yield record
        if self._cells[0] in succeeded:  # else there is nothing to compare a perturbed run with
            yield from self._perturbed(case, prompts, alone)
        if self._relator is not None:
            yield from self._relator.run(case, prompts, succeeded, alone, self)
        if processes and alone != settings:
            for cell in cells:
                if num_ranks(cell) > 1:
                    apart = {**settings, "executor": "processes"}
                    yield self._recorder.run(case, prompts, cell, apart, plans.get(plan_key(cell)))
        yield self._ended(case)

    def run_in_turn(self, cases: Sequence[Case], cells: Sequence[Cell]) -> Iterator[Record]:
        """Every case in one cell before the next is opened: for systems that take long to start.

        Nothing is replayed, since such a system schedules for itself. A cell that is refused is
        one record; one that does not start is an error of every case, and the others go on.
        """
        settings = inline(self._system.settings[0])
        ready: list[tuple[Case, tuple[Encoded, ...]]] = []
        # Task by task: an engine may have to load its model anew to change between them.
        for case in sorted(cases, key=lambda case: case.task):
            try:
                prompts = self._system.encode(case)
            except Exception as failure:  # noqa: BLE001 - whatever a system raises is its verdict
                yield from self._unreadable(case, settings, message(failure))
                continue
            yield from self._begun(case, prompts)
            ready.append((case, prompts))
        for cell in cells:
            began = time.perf_counter()
            try:
                self._system.open(cell, settings)
            except Refused as refusal:
                self._refused[cell] = str(refusal)
                yield RefusalRecord(
                    checkpoint=self._checkpoint.name, cell=dict(cell), reason=str(refusal)
                )
                continue
            except Exception:  # noqa: BLE001, S110 - every case's own run tells of it below
                pass
            self.clock.add("start-up", time.perf_counter() - began)
            for case, prompts in ready:
                record = self._recorder.run(case, prompts, cell, settings, None)
                yield record
                if cell == self._cells[0] and not record.error:
                    yield from self._perturbed(case, prompts, settings)
            self._system.release()
        for case in cases:
            yield self._ended(case)

    def _ended(self, case: Case) -> CaseEndRecord:
        return CaseEndRecord(case_id=case.case_id, checkpoint=self._checkpoint.name)

    def _begun(self, case: Case, prompts: Sequence[Encoded]) -> Iterator[Record]:
        """What is recorded of a case before the system runs it."""
        lengths = tuple(len(p.token_ids) for p in prompts)
        yield CaseRecord(
            case_id=case.case_id,
            checkpoint=self._checkpoint.name,
            task=case.task,
            case=case.to_json(),
            lengths=lengths,
            boundaries=boundaries_of(
                [n for n in lengths if n], self._checkpoint.edges, [p.token_ids for p in prompts]
            ),
        )
        yield self._recorder.answer(case, prompts, self._reference, ORACLE)
        if self._twin is not None:
            yield self._recorder.answer(case, prompts, self._twin, TWIN)

    def _unreadable(self, case: Case, settings: Mapping[str, str], error: str) -> Iterator[Record]:
        """A case whose prompts cannot be made into tokens: an error in every cell."""
        yield CaseRecord(
            case_id=case.case_id,
            checkpoint=self._checkpoint.name,
            task=case.task,
            case=case.to_json(),
            lengths=(0,) * len(case.prompts),
            boundaries=(),
        )
        for cell in self.cells:
            yield self._recorder.without_run(case, cell, settings, error=error)

    def _perturbed(
        self, case: Case, prompts: Sequence[Encoded], settings: Mapping[str, str]
    ) -> Iterator[Record]:
        runs: list[tuple[str, Places, tuple[Encoded, ...]]] = []
        for name in PERTURBATIONS:
            chosen, changed = perturbed(name, prompts, self._checkpoint.chunk, self._reach)
            runs.append((name, tuple(chosen.items()), changed))
        for name, places, changed in (*runs, (LONE, *lone_tokens(prompts))):
            if not places:
                continue
            asked = replace(case, prompts=tuple(case.prompts[i] for i, _ in places), arrivals=())
            marked = {**settings, "perturbed": name, "changed": written(places)}
            yield as_one_of(
                self._recorder.run(asked, changed, baseline(), marked, None, phase="power"), case
            )

    def follow_up(
        self,
        asked: FollowUp,
        cell: Cell,
        settings: Mapping[str, str],
        plan: Plan | None,
        of: Case,
    ) -> ExecutionRecord:
        """A follow-up of the case `of`, in one cell; recorded as one of that case's executions."""
        record = self._recorder.run(
            asked.case,
            asked.prompts,
            cell,
            settings,
            plan,
            phase="relations",
            before=asked.before,
            served=asked.served,
        )
        return as_one_of(record, of)

    def follow_up_truth(
        self, asked: FollowUp, settings: Mapping[str, str], of: Case
    ) -> ExecutionRecord:
        """float64's answers to a follow-up."""
        marked = {**ORACLE, "relation": settings["relation"]}
        return as_one_of(
            self._recorder.answer(asked.case, asked.prompts, self._reference, marked), of
        )


def _cells(
    axes: Sequence[Axis],
    cover: int,
    production: Mapping[str, str] | None,
    startable: Startable | None,
) -> tuple[Cell, ...]:
    if production is not None:
        return leave_one_off(production, axes)
    if cover:
        return covering(axes, cover, startable)
    return lattice(axes, {a.name: a.baseline for a in AXES.values() if a not in axes})


def _startable(system: System, axes: Sequence[Axis]) -> Startable | None:
    """The cells that the system says it starts in, and in which each value can act.

    None: it tells only when it is started.
    """
    if not isinstance(system, Selective):
        return None
    return Startable(axes, lambda cell: system.refusal(cell) or idle(cell))

"""Running cases: every cell of the lattice, each on its recorded plan, as records."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.axes import (
    AXES,
    Axis,
    Cell,
    Plan,
    Startable,
    baseline,
    coverage,
    covering,
    inline,
    lattice,
    leave_one_off,
    num_ranks,
    plan_key,
    select,
)
from harness.axes.overlap import cannot_overlap
from harness.campaign.outputs import OutputStore
from harness.campaign.perturb import PERTURBATIONS, perturbed, written
from harness.campaign.profile import CheckpointPlan
from harness.campaign.reference import CaseReference
from harness.campaign.relate import Relator
from harness.case import Case
from harness.record import (
    CaseEndRecord,
    CaseRecord,
    ExecutionRecord,
    NoticeRecord,
    Record,
    RefusalRecord,
)
from harness.relations import FollowUp
from harness.strategies.lengths import boundaries_of
from harness.systems.base import Encoded, Refused, Selective, System, SystemRun

ORACLE, TWIN = {"system": "oracle"}, {"system": "twin"}
"""Settings that mark the float64 answer, and a trusted float32 one, among a case's executions."""
MARKS = ("perturbed", "changed", "relation")
"""Settings that say what a run is for; no system sees them."""


def execution_id(case_id: str, cell: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Stable id of one case in one cell under these settings."""
    text = f"{case_id}|{sorted(cell.items())}|{sorted(settings.items())}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(slots=True)
class Clock:
    """Owns: where the time went, by phase, in seconds."""

    phases: dict[str, float] = field(default_factory=dict)

    def add(self, phase: str, seconds: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


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
        self._store, self._attempts, self._reach = store, attempts, reach
        chosen = select(axes)
        self._axes, self._cover = chosen, cover
        self._startable = _startable(system, chosen) if cover and not production else None
        self._cells = _cells(chosen, cover, production, self._startable)
        self._refused: dict[Cell, str] = {}
        self.clock = clock or Clock()
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
            yield from self._unreadable(case, alone, _message(failure))
            yield self._ended(case)
            return
        yield from self._begun(case, prompts)
        plans: dict[tuple[str, ...], Plan] = {}
        succeeded: dict[Cell, ExecutionRecord] = {}
        for cell in cells:
            record = self._execute(case, prompts, cell, alone, plans.get(plan_key(cell)))
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
                    yield self._execute(case, prompts, cell, apart, plans.get(plan_key(cell)))
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
                yield from self._unreadable(case, settings, _message(failure))
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
                record = self._execute(case, prompts, cell, settings, None)
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
            boundaries=boundaries_of([n for n in lengths if n], self._checkpoint.edges),
        )
        yield self._answer(case, prompts, self._reference, ORACLE)
        if self._twin is not None:
            yield self._answer(case, prompts, self._twin, TWIN)

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
            yield self._without_run(case, cell, settings, error=error)

    def _answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        reference: CaseReference,
        settings: Mapping[str, str],
    ) -> ExecutionRecord:
        began, error = time.perf_counter(), ""
        name, digest = "", ""
        try:
            name, digest = self._store.write(reference.outputs(case, prompts))
        except Exception as failure:  # noqa: BLE001 - one case's trouble may not end the others
            error = _message(failure)
        seconds = time.perf_counter() - began
        self.clock.add("oracle", seconds)
        return self._without_run(
            case, {}, settings, error=error, outputs=name, digest=digest, seconds=seconds
        )

    def _without_run(
        self,
        case: Case,
        cell: Mapping[str, str],
        settings: Mapping[str, str],
        *,
        error: str = "",
        outputs: str = "",
        digest: str = "",
        seconds: float = 0.0,
    ) -> ExecutionRecord:
        """Record of what no system ran: it has neither plan nor witness."""
        return ExecutionRecord(
            execution_id=execution_id(case.case_id, cell, settings),
            case_id=case.case_id,
            checkpoint=self._checkpoint.name,
            cell=dict(cell),
            settings=dict(settings),
            plan=None,
            plan_digest="",
            witness={},
            outputs=outputs,
            output_digest=digest,
            error=error,
            seconds=seconds,
        )

    def _perturbed(
        self, case: Case, prompts: Sequence[Encoded], settings: Mapping[str, str]
    ) -> Iterator[Record]:
        for name in PERTURBATIONS:
            chosen, changed = perturbed(name, prompts, self._checkpoint.chunk, self._reach)
            if not chosen:
                continue
            asked = replace(case, prompts=tuple(case.prompts[i] for i in chosen), arrivals=())
            marked = {**settings, "perturbed": name, "changed": written(chosen)}
            yield _of(self._execute(asked, changed, baseline(), marked, None, phase="power"), case)

    def follow_up(
        self,
        asked: FollowUp,
        cell: Cell,
        settings: Mapping[str, str],
        plan: Plan | None,
        of: Case,
    ) -> ExecutionRecord:
        """A follow-up of the case `of`, in one cell; recorded as one of that case's executions."""
        record = self._execute(
            asked.case, asked.prompts, cell, settings, plan, phase="relations", before=asked.before
        )
        return _of(record, of)

    def follow_up_truth(
        self, asked: FollowUp, settings: Mapping[str, str], of: Case
    ) -> ExecutionRecord:
        """float64's answers to a follow-up."""
        marked = {**ORACLE, "relation": settings["relation"]}
        return _of(self._answer(asked.case, asked.prompts, self._reference, marked), of)

    def _execute(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        cell: Cell,
        settings: Mapping[str, str],
        plan: Plan | None,
        *,
        phase: str = "engine",
        before: Sequence[tuple[Case, Sequence[Encoded]]] = (),
    ) -> ExecutionRecord:
        """One run; repeated while real concurrency has not shown the overlap it should."""
        began = time.perf_counter()
        shared = {k: v for k, v in settings.items() if k not in MARKS}
        lengths = [len(prompt.token_ids) for prompt in prompts]
        run, error, attempt = None, "", 0
        while run is None or (not error and self._unlucky(cell, shared, lengths, run, attempt)):
            attempt += 1
            try:
                session = self._system.open(cell, shared)
                for other, its in before:
                    session.run(other, its)
                run = session.run(case, prompts, plan=plan)
            except Exception as failure:  # noqa: BLE001 - whatever a system raises is its verdict
                error = _message(failure)
                self._system.discard(cell, shared)
                break
        seconds = time.perf_counter() - began
        self.clock.add(phase, seconds)
        name, digest = ("", "") if run is None or error else self._store.write(run.outputs)
        return ExecutionRecord(
            execution_id=execution_id(case.case_id, cell, settings),
            case_id=case.case_id,
            checkpoint=self._checkpoint.name,
            cell=dict(cell),
            settings=dict(settings),
            plan=None if run is None else run.plan,
            plan_digest="" if run is None else str(run.witness.get("plan_digest", "")),
            witness={} if run is None else run.witness,
            outputs=name,
            output_digest=digest,
            error=error,
            seconds=seconds,
            attempt=attempt,
        )

    def _unlucky(
        self,
        cell: Cell,
        settings: Mapping[str, str],
        lengths: Sequence[int],
        run: SystemRun,
        attempt: int,
    ) -> bool:
        """Whether threads could have overlapped and did not, and another try is allowed."""
        if settings.get("stream_policy") != "threaded" or attempt >= self._attempts:
            return False
        if cannot_overlap(cell, settings) or AXES["async"].applicable(
            cell, lengths, run.plan or ()
        ):
            return False
        return AXES["async"].witnessed(cell, run.witness) is not None


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
    """The cells that the system says it starts in; None: it tells only when it is started."""
    return Startable(axes, system.refusal) if isinstance(system, Selective) else None


def _of(record: ExecutionRecord, case: Case) -> ExecutionRecord:
    """The record of a follow-up, as one of the case it follows."""
    name = execution_id(case.case_id, record.cell, record.settings)
    return replace(record, case_id=case.case_id, execution_id=name)


def _message(failure: Exception) -> str:
    last = traceback.extract_tb(failure.__traceback__)[-1]
    place = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
    return f"{type(failure).__name__}: {failure} ({place})"


__all__ = ["CaseExecutor", "Clock", "NoticeRecord"]

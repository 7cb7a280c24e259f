"""One case run in one cell, or asked of a reference, as the record that is kept of it."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.axes import AXES, Cell, Plan
from harness.axes.overlap import cannot_overlap
from harness.campaign.outputs import OutputStore
from harness.campaign.reference import CaseReference
from harness.case import Case
from harness.record import ExecutionRecord
from harness.systems.base import Encoded, Served, Session, System, SystemRun

ORACLE, TWIN = {"system": "oracle"}, {"system": "twin"}
"""Settings that mark the float64 answer, and a trusted float32 one, among a case's executions."""
MARKS = ("perturbed", "changed", "relation")
"""Settings that say what a run is for; no system sees them."""


def execution_id(
    checkpoint: str, case_id: str, cell: Mapping[str, str], settings: Mapping[str, str]
) -> str:
    """Stable id of one case in one cell of one checkpoint under these settings.

    The checkpoint is part of it, since families share cases and a report holds runs by their ids.
    """
    text = f"{checkpoint}|{case_id}|{sorted(cell.items())}|{sorted(settings.items())}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(slots=True)
class Clock:
    """Owns: where the time went, by phase, in seconds."""

    phases: dict[str, float] = field(default_factory=dict)

    def add(self, phase: str, seconds: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


class Recorder:
    """Runs one case in one cell at a time, whatever comes of it, and makes the record.

    Owns: nothing; outputs go to the store, seconds to the clock, engines are the system's.
    """

    def __init__(
        self, *, checkpoint: str, system: System, store: OutputStore, attempts: int, clock: Clock
    ) -> None:
        self._checkpoint, self._system = checkpoint, system
        self._store, self._attempts, self._clock = store, attempts, clock

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        cell: Cell,
        settings: Mapping[str, str],
        plan: Plan | None,
        *,
        phase: str = "engine",
        before: Sequence[tuple[Case, Sequence[Encoded]]] = (),
        served: bool = False,
    ) -> ExecutionRecord:
        """One run; repeated while real concurrency has not shown the overlap it should."""
        began = time.perf_counter()
        shared = {k: v for k, v in settings.items() if k not in MARKS}
        lengths = [len(prompt.token_ids) for prompt in prompts]
        run, error, attempt = None, "", 0
        while run is None or (not error and self._unlucky(cell, shared, lengths, run, attempt)):
            attempt += 1
            try:
                session = self._session(cell, shared, served=served)
                for other, its in before:
                    session.run(other, its)
                run = session.run(case, prompts, plan=plan)
            except Exception as failure:  # noqa: BLE001 - whatever a system raises is its verdict
                error = message(failure)
                self._system.discard(cell, shared)
                break
        seconds = time.perf_counter() - began
        self._clock.add(phase, seconds)
        name, digest = ("", "") if run is None or error else self._store.write(run.outputs)
        record = self.without_run(
            case, cell, settings, error=error, outputs=name, digest=digest, seconds=seconds
        )
        if run is None:
            return replace(record, attempt=attempt)
        return replace(
            record,
            plan=run.plan,
            plan_digest=str(run.witness.get("plan_digest", "")),
            witness=run.witness,
            attempt=attempt,
        )

    def _session(self, cell: Cell, settings: Mapping[str, str], *, served: bool) -> Session:
        if not served:
            return self._system.open(cell, settings)
        assert isinstance(self._system, Served), self._system
        return self._system.serve(cell, settings)

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

    def answer(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        reference: CaseReference,
        settings: Mapping[str, str],
    ) -> ExecutionRecord:
        """A reference's outputs; an error of its own stays in the record."""
        began, error = time.perf_counter(), ""
        name, digest = "", ""
        try:
            name, digest = self._store.write(reference.outputs(case, prompts))
        except Exception as failure:  # noqa: BLE001 - one case's trouble may not end the others
            error = message(failure)
        seconds = time.perf_counter() - began
        self._clock.add("oracle", seconds)
        return self.without_run(
            case, {}, settings, error=error, outputs=name, digest=digest, seconds=seconds
        )

    def without_run(
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
        case_id = case.case_id  # a hash of the whole case
        return ExecutionRecord(
            execution_id=execution_id(self._checkpoint, case_id, cell, settings),
            case_id=case_id,
            checkpoint=self._checkpoint,
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


def as_one_of(record: ExecutionRecord, case: Case) -> ExecutionRecord:
    """The record of a follow-up, as one of the case it follows."""
    case_id = case.case_id
    name = execution_id(record.checkpoint, case_id, record.cell, record.settings)
    return replace(record, case_id=case_id, execution_id=name)


def message(failure: Exception) -> str:
    """Kind, words and place of what a system raised."""
    last = traceback.extract_tb(failure.__traceback__)[-1]
    place = f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno}"
    return f"{type(failure).__name__}: {failure} ({place})"

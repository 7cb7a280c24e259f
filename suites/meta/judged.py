"""A system run over the lattice by the campaign's own executor and judged by its own judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.axes import Plan
from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.profile import FENCED_COPY_LAGS, CheckpointPlan
from harness.campaign.reference import CaseReference
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import checkpoint
from harness.judge.output import Output
from harness.oracle.oracle import Reference
from harness.record import CaseRecord, ExecutionRecord, PairRecord, PowerRecord, Record
from harness.systems.base import Encoded, Session, System, SystemRun
from harness.systems.engine import EngineOptions, EngineSystem

CHUNK, MAX_LENGTH = 16, 128
LENGTHS = (40, 7, 33, 16, 50, 20)
"""Several steps also when whole, prompts of several chunks, and one that fits a chunk."""

PLAN = CheckpointPlan(
    name="tiny-qwen3",
    cases=1,
    chunk=CHUNK,
    max_num_seqs=2,
    max_model_len=MAX_LENGTH,
    max_case_tokens=sum(LENGTHS),
)
CASES = tuple(
    Case(
        task=task,
        prompts=tuple(
            Prompt(tokens=tuple((31 * i + 7 * j + j * j) % 250 for j in range(length)))
            for i, length in enumerate(LENGTHS)
        ),
        normalize=normalize,
    )
    for task, normalize in (("embed", None), ("token_embed", False))
)


def engine_system(path: Path) -> EngineSystem:
    return EngineSystem(
        EngineOptions(model=path, chunk=CHUNK, max_num_seqs=2, max_model_len=MAX_LENGTH)
    )


class Wrapped:
    """A system that hands everything on; what a test overrides is the lie."""

    def __init__(self, inner: System) -> None:
        self.inner = inner

    @property
    def dtype(self) -> str:
        return self.inner.dtype

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.inner.tasks

    @property
    def settings(self) -> tuple[Mapping[str, str], ...]:
        return self.inner.settings

    @property
    def costly(self) -> bool:
        return self.inner.costly

    def about(self) -> Mapping[str, str]:
        return self.inner.about()

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        return self.inner.encode(case)

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        return self.inner.open(cell, settings)

    def discard(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> None:
        self.inner.discard(cell, settings)

    def plant(self, name: str) -> None:
        self.inner.plant(name)

    def unplant(self, name: str) -> None:
        self.inner.unplant(name)

    def release(self) -> None:
        self.inner.release()

    def close(self) -> None:
        self.inner.close()


class Liar(Wrapped):
    """Runs `value` on `axis` whatever it is asked for."""

    def __init__(self, inner: System, axis: str, value: str) -> None:
        super().__init__(inner)
        self._lie = {axis: value}

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        return self.inner.open({**cell, **self._lie}, settings)


Change = Callable[[tuple[Output, ...]], tuple[Output, ...]]


class Changed(Wrapped):
    """Returns something else than what its engine computed."""

    def __init__(self, inner: System, change: Change) -> None:
        super().__init__(inner)
        self._change = change

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        return _ChangedSession(self.inner.open(cell, settings), self._change)


class _ChangedSession:
    def __init__(self, inner: Session, change: Change) -> None:
        self._inner, self._change = inner, change

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        run = self._inner.run(case, prompts, plan=plan, taps=taps)
        return replace(run, outputs=self._change(run.outputs))


class Judged:
    """Everything recorded of one system: what ran, whether the cases have power, every verdict."""

    def __init__(self, records: Sequence[Record], verdicts: Sequence[Record]) -> None:
        self.executions = [r for r in records if isinstance(r, ExecutionRecord)]
        self.cases = [r for r in records if isinstance(r, CaseRecord)]
        self.powers = [r for r in verdicts if isinstance(r, PowerRecord)]
        self.pairs = [r for r in verdicts if isinstance(r, PairRecord)]

    def claiming(self, axis: str) -> list[PairRecord]:
        """The pairs whose two cells differ in the axis."""
        return [pair for pair in self.pairs if axis in pair.axes]


def judged(
    system: System,
    oracle: Reference,
    folder: Path,
    *,
    cases: Sequence[Case] = CASES,
    settings: Mapping[str, str] = FENCED_COPY_LAGS,
    axes: Sequence[str] | None = None,
) -> Judged:
    """Run the cases in every cell, then judge them; the folder takes the outputs."""
    store = OutputStore(folder)
    executor = CaseExecutor(
        checkpoint=PLAN,
        system=system,
        reference=CaseReference(oracle=oracle, checkpoint=checkpoint(PLAN.name)),
        store=store,
        attempts=1,
        axes=axes,
    )
    records = list(executor.start())
    for case in cases:
        records += executor.run(case, settings)
    judge = CheckpointJudge(dtype=system.dtype, causal=True, store=store, chunk=PLAN.chunk)
    return Judged(records, list(judge.judge(executed(records)[PLAN.name])))

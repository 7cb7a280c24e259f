"""The toy system with one more flaw: what leaks into an answer from where it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from harness.axes import Plan
from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.relate import RelationPlan, Relator
from harness.case import Case
from harness.judge.output import Output
from harness.record import Comparison, PairRecord
from harness.systems.base import Encoded, SystemRun
from suites.unit.attribution.toy import (
    COPY_LAGS,
    PLAN,
    VOCABULARY,
    ToySession,
    ToySystem,
    Truth,
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Where one prompt was asked."""

    prompts: Sequence[Encoded]
    index: int
    before: int
    """Prompts that the system had answered before this run."""
    served: bool = False

    @property
    def length(self) -> int:
        return len(self.prompts[self.index].token_ids)


Leak = Callable[[Asked], float]
"""What is added to a prompt's answer."""


def tight(asked: Asked) -> float:
    return 0.0


@dataclass
class LeakySystem(ToySystem):
    """Owns: how many prompts it has answered."""

    leak: Leak = tight
    answered: int = 0
    symmetric: bool = False

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        return tuple(
            one
            if prompt.query is None or prompt.document is None
            else Encoded(token_ids=self._pair(prompt.query.encode(), prompt.document.encode()))
            for prompt, one in zip(case.prompts, super().encode(case), strict=True)
        )

    def _pair(self, query: bytes, document: bytes) -> tuple[int, ...]:
        first, second = sorted((query, document)) if self.symmetric else (query, document)
        return (*first, 300, *second)

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> LeakySession:
        return LeakySession(self, cell, settings)

    @property
    def unserved(self) -> str:
        return ""

    def serve(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> ToySession:
        return ServedSession(self, cell, settings)


@dataclass
class LeakySession(ToySession):
    system: LeakySystem
    served: ClassVar[bool] = False

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        run = super().run(case, prompts, plan=plan, taps=taps)
        before = self.system.answered
        self.system.answered += len(prompts)
        outputs = []
        for index, output in enumerate(run.outputs):
            asked = Asked(prompts=prompts, index=index, before=before, served=self.served)
            wrong = np.float32(self.system.leak(asked))
            outputs.append(Output.of(output.data + wrong) if wrong else output)
        return replace(run, outputs=tuple(outputs))


class ServedSession(LeakySession):
    """Names its requests as a server does."""

    served = True

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        run = super().run(case, prompts, plan=plan, taps=taps)
        named = [[[f"pool-1/input[{e[0]}]", *e[1:]] for e in step] for step in run.plan]
        return replace(run, plan=named)


def related(
    folder: Path,
    system: ToySystem,
    case: Case,
    relation: str,
    settings: Mapping[str, str] = COPY_LAGS,
) -> list[PairRecord]:
    """Run a case with one relation and judge it; the pairs of that relation."""
    store = OutputStore(folder)
    relator = Relator(
        plan=RelationPlan(names=(relation,)),
        system=system,
        causal=True,
        vocabulary=VOCABULARY,
        max_model_len=PLAN.max_model_len,
    )
    executor = CaseExecutor(
        checkpoint=PLAN,
        system=system,
        reference=Truth(),  # type: ignore[arg-type]
        store=store,
        attempts=1,
        relator=relator,
    )
    records = list(executor.run(case, settings))
    judge = CheckpointJudge(dtype="float32", causal=True, store=store, chunk=PLAN.chunk)
    verdicts = judge.judge(executed(records)[PLAN.name])
    return [
        r for r in verdicts if isinstance(r, PairRecord) and r.comparison is Comparison.RELATION
    ]

"""A system small enough to be wrong on purpose in any cell: tables of numbers, no model.

A prompt's row at token n is the running sum of one vector for each (token, position) up to n, so
every token moves what follows. `broken` decides where an answer is replaced, `racing` where the
happens-before check reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.attribution import find
from harness.axes import Plan
from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, Executed, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.profile import CheckpointPlan
from harness.case import Case
from harness.judge.bounds import Bounds
from harness.judge.output import Float64, Output
from harness.record import FindingRecord, PairRecord
from harness.search import Budget
from harness.systems.base import Encoded, SystemRun, TapRows

CHUNK, MAX_SEQS, WIDTH, VOCABULARY = 16, 2, 8, 600
PLAN = CheckpointPlan(
    name="toy", cases=1, chunk=CHUNK, max_num_seqs=MAX_SEQS, max_model_len=256, max_case_tokens=256
)
PACED = {"stream_policy": "paced(1)", "inputs": "fenced"}
COPY_LAGS = {"stream_policy": "lag(copy@last)", "inputs": "fenced"}
THREADED = {"stream_policy": "threaded", "inputs": "fenced"}
_TABLE = np.random.default_rng(0).standard_normal((VOCABULARY, WIDTH))


@dataclass(frozen=True, kw_only=True)
class Situation:
    """All that a defect may depend on."""

    cell: Mapping[str, str]
    settings: Mapping[str, str]
    case: Case
    lengths: tuple[int, ...]
    plan: Plan
    taps: bool = False

    def on(self, *values: str) -> bool:
        """Whether every `axis=value` is set."""
        return all(self.cell.get(v.split("=")[0]) == v.split("=")[1] for v in values)

    @property
    def chunks(self) -> int:
        """Pieces of the prompt that is split most."""
        names = [entry[0] for step in self.plan for entry in step]
        return max(names.count(name) for name in names)


Defect = Callable[[Situation], float]
"""What is added to the answer of the last prompt; 0 where the system is right."""


def nowhere(situation: Situation) -> float:
    return 0.0


def rows_of(tokens: Sequence[int]) -> Float64:
    """[tokens, WIDTH], float64."""
    places = 1.0 + 0.01 * np.arange(len(tokens))
    return np.cumsum(_TABLE[list(tokens)] * places[:, None], axis=0)


class Truth:
    """The toy's float64 answers."""

    def outputs(self, case: Case, prompts: Sequence[Encoded]) -> tuple[Output, ...]:
        found = []
        for prompt in prompts:
            rows = rows_of(prompt.token_ids)
            values = rows if case.task == "token_embed" else rows[-1]
            if case.normalize is not False:
                values = values / np.linalg.norm(values, axis=-1, keepdims=True)
            found.append(Output.of(values))
        return tuple(found)


def scheduled(lengths: Sequence[int], *, chunked: bool) -> list[list[list[Any]]]:
    """First come, first served: at most MAX_SEQS prompts and, if chunked, CHUNK tokens a step."""
    done, steps = [0] * len(lengths), []
    while any(d < n for d, n in zip(done, lengths, strict=True)):
        budget, step = CHUNK if chunked else sum(lengths), []
        for index, total in enumerate(lengths):
            count = min(budget, total - done[index])
            if count > 0 and len(step) < MAX_SEQS:
                step.append([str(index), done[index], count, total])
                done[index] += count
                budget -= count
        steps.append(step)
    return steps


@dataclass
class ToySystem:
    """Owns: how often it was run. Every cell and settings are one session."""

    broken: Defect = nowhere
    racing: Defect = nowhere
    runs: int = 0
    replayed: list[tuple[Mapping[str, str], bool]] = field(default_factory=list)
    """(Cell, whether it was given a plan), run by run."""
    dtype: str = "float32"

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        return tuple(
            Encoded(token_ids=p.tokens if p.tokens is not None else tuple((p.text or "").encode()))
            for p in case.prompts
        )

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> ToySession:
        return ToySession(self, cell, settings)

    def discard(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> None: ...

    def plant(self, name: str) -> None: ...

    def unplant(self, name: str) -> None: ...

    def close(self) -> None: ...


@dataclass
class ToySession:
    system: ToySystem
    cell: Mapping[str, str]
    settings: Mapping[str, str]

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        self.system.runs += 1
        self.system.replayed.append((self.cell, plan is not None))
        lengths = tuple(len(p.token_ids) for p in prompts)
        if plan is None:
            plan = scheduled(lengths, chunked=self.cell["chunk"] == "chunked")
        situation = Situation(
            cell=self.cell,
            settings=self.settings,
            case=case,
            lengths=lengths,
            plan=plan,
            taps=taps,
        )
        wrong = self.system.broken(situation)
        answers = [o.data.astype(np.float32) for o in Truth().outputs(case, prompts)]
        if wrong:
            answers[-1] = answers[-1] + np.float32(wrong)
        return SystemRun(
            outputs=tuple(Output.of(a) for a in answers),
            plan=plan,
            witness=self._witness(plan, raced=bool(self.system.racing(situation))),
            taps=tuple(self._taps(plan, prompts, wrong)) if taps else (),
        )

    def _taps(self, plan: Plan, prompts: Sequence[Encoded], wrong: float) -> Sequence[TapRows]:
        """Layer 0 is right; layer 1 of the last prompt is wrong from its last step on."""
        last = max(i for i, step in enumerate(plan) if any(e[0] == plan[-1][-1][0] for e in step))
        return [
            TapRows(
                prompt=int(name),
                layer=layer,
                step=index,
                start=start,
                rows=rows_of(prompts[int(name)].token_ids)[start : start + count]
                + (wrong if layer == 1 and index == last else 0.0),
            )
            for index, step in enumerate(plan)
            for name, start, count, _ in step
            for layer in (0, 1)
        ]

    def _witness(self, plan: Plan, *, raced: bool) -> dict[str, Any]:
        stages, compiled = int(self.cell["pp"]), self.cell["compile"] == "compiled"
        apart = self.settings.get("executor") == "processes"
        names = [entry[0] for step in plan for entry in step]
        rank = {
            "steps": len(plan),
            "operations": 9 * len(plan),
            "compiled_calls": 2 * len(plan) if compiled else 0,
            "lookahead": stages - 1 + (self.cell["async"] == "async"),
            "num_threads": 1,
        }
        return {
            "plan_digest": hashlib.sha256(json.dumps(plan).encode()).hexdigest(),
            "chunks": {name: names.count(name) for name in names},
            "padded_tokens": [sum(entry[2] for entry in step) for step in plan],
            "stream_policy": self.settings["stream_policy"],
            "instruction_set": "toy",
            "flags": {"batch_invariant": "off"},
            "ranks": [
                {
                    **rank,
                    "rank": index,
                    "pid": 100 + index * apart,
                    "hazards": ["nothing orders the two"] if raced and index == 0 else [],
                }
                for index in range(stages)
            ],
        }


@dataclass(frozen=True, kw_only=True)
class ToyRun:
    """What a campaign on the toy left behind, and findings made of it."""

    system: ToySystem
    cases: list[Executed]
    pairs: list[PairRecord]
    store: OutputStore
    bounds: Bounds

    def findings(self, **options: Any) -> list[FindingRecord]:
        choices: dict[str, Any] = {
            "policies": (COPY_LAGS, PACED),
            "budget": Budget(calls=10**6, seconds=10**6),
            "oracle": Truth(),
            **options,
        }
        return list(
            find(
                self.cases,
                self.pairs,
                system=self.system,
                plan=PLAN,
                store=self.store,
                bounds=self.bounds,
                run_id="RUN",
                **choices,
            )
        )


def campaign(
    folder: Path,
    system: ToySystem,
    work: Sequence[tuple[Case, Mapping[str, str]]],
    *,
    processes: bool = False,
    truth: Truth | None = None,
) -> ToyRun:
    """Run and judge cases as a real campaign does."""
    store = OutputStore(folder)
    executor = CaseExecutor(
        checkpoint=PLAN,
        system=system,
        reference=truth or Truth(),  # type: ignore[arg-type]
        store=store,
        attempts=1,
    )
    records = [
        record
        for case, settings in work
        for record in executor.run(case, settings, processes=processes)
    ]
    cases, bounds = executed(records)["toy"], Bounds()
    judge = CheckpointJudge(dtype="float32", causal=True, store=store, bounds=bounds)
    pairs = [record for record in judge.judge(cases) if isinstance(record, PairRecord)]
    return ToyRun(system=system, cases=cases, pairs=pairs, store=store, bounds=bounds)

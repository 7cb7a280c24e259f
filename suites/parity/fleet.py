"""Engines in every configuration, over one set of weights and one compiled block.

Meant for the suites that compare runs bit by bit or with another implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from engine.config import (
    EngineConfig,
    ExecutionConfig,
    ParallelConfig,
    SchedulerConfig,
    StreamPolicy,
)
from engine.engine import Engine, RunResult
from engine.plan import StepPlan
from engine.request import PoolingRequest, Task
from engine.resources import Resources

PATIENCE_S = 500.0
"""For one answer of a worker process, which may have to compile on a busy machine first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way of running requests; the defaults are the plainest one."""

    mode: str = "eager"
    chunk: int | None = None
    """Token budget of a step; None: every prompt whole."""
    asynchronous: bool = False
    stages: int = 1
    tensor_ranks: int = 1
    policy: str = "immediate"
    inputs: str = "fenced"
    executor: str = "inline"
    batch_invariant: bool = False
    graph_buckets: tuple[int, ...] | None = None
    plugins: tuple[str, ...] = ()

    @property
    def cell(self) -> dict[str, str]:
        """The same, as the lattice's axes have it."""
        return {
            "compile": self.mode,
            "chunk": "whole" if self.chunk is None else "chunked",
            "async": "async" if self.asynchronous else "sync",
            "pp": str(self.stages),
        }

    def __str__(self) -> str:
        cell = ",".join(f"{name}={value}" for name, value in self.cell.items())
        invariant = ",batch_invariant" if self.batch_invariant else ""
        return f"{cell}{invariant},{self.policy},{self.inputs},{self.executor}"

    @property
    def settings(self) -> dict[str, str]:
        return {"stream_policy": self.policy, "inputs": self.inputs, "executor": self.executor}


class Fleet:
    """Owns: the weights and the compiled block that all its inline engines share."""

    def __init__(
        self, model: Path, *, batch_invariant: bool = False, max_model_len: int = 128
    ) -> None:
        self._model, self._max_model_len = model, max_model_len
        self._batch_invariant = batch_invariant
        self.resources = Resources(self.config(Way(batch_invariant=batch_invariant)))

    def config(self, way: Way) -> EngineConfig:
        return EngineConfig(
            model=self._model,
            max_model_len=self._max_model_len,
            scheduler=SchedulerConfig(
                max_num_batched_tokens=way.chunk or 2 * self._max_model_len,
                max_num_seqs=2,
                chunked_prefill=way.chunk is not None,
                async_scheduling=way.asynchronous,
            ),
            execution=ExecutionConfig(
                mode=way.mode,
                batch_invariant=way.batch_invariant,
                graph_buckets=way.graph_buckets,
            ),
            parallel=ParallelConfig(
                pipeline_parallel_size=way.stages,
                tensor_parallel_size=way.tensor_ranks,
                executor=way.executor,
                worker_timeout_s=PATIENCE_S,
            ),
            stream=StreamPolicy.parse(way.policy),
            inputs=way.inputs,
            plugins=way.plugins,
        )

    def engine(self, way: Way) -> Engine:
        """A fresh engine; the caller closes it."""
        inline = way.executor == "inline"
        return Engine(self.config(way), resources=self.resources if inline else None)

    def truth(
        self, way: Way, requests: Sequence[PoolingRequest], plan: Sequence[StepPlan]
    ) -> RunResult:
        """The same in float64, on one rank, with attention written out."""
        exact = ExecutionConfig(dtype="float64", attention="naive")
        with Engine(replace(self.config(way), execution=exact)) as engine:
            return engine.run(requests, plan=plan)

    def run(
        self,
        way: Way,
        requests: Sequence[PoolingRequest],
        plan: Sequence[StepPlan] | None = None,
    ) -> RunResult:
        """One run on an engine of its own."""
        with self.engine(way) as engine:
            result = engine.run(requests, plan=plan)
        assert not result.refused, result.refused
        return result


def relative_errors(run: RunResult, truth: RunResult) -> list[float]:
    """Relative distance of each embedding and each token's embedded row from the truth's."""
    found = []
    for name, output in run.outputs.items():
        if output.task in (Task.EMBED, Task.TOKEN_EMBED):
            a, b = (torch.atleast_2d(r.outputs[name].values.double()) for r in (run, truth))
            found += ((a - b).norm(dim=1) / b.norm(dim=1)).tolist()
    return found


def differing(a: RunResult, b: RunResult) -> list[str]:
    """Ids of the requests whose outputs are not the same bits; every id must be on both sides."""
    assert a.outputs.keys() == b.outputs.keys(), (sorted(a.outputs), sorted(b.outputs))
    assert a.outputs, "no request was answered: there is nothing to compare"
    found = []
    for name, output in a.outputs.items():
        x, y = output.values, b.outputs[name].values
        # As integers: NaN is not equal to itself, and -0.0 is equal to 0.0.
        if (x.dtype, x.shape) != (y.dtype, y.shape) or not torch.equal(
            x.view(torch.int32), y.view(torch.int32)
        ):
            found.append(name)
    return found

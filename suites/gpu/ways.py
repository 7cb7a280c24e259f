"""Ways of running the same requests on a GPU, each over shared weights and compiled blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch

from engine.config import (
    EngineConfig,
    ExecutionConfig,
    ParallelConfig,
    SchedulerConfig,
)
from engine.engine import Engine, RunResult
from engine.models.config import read_model_config
from engine.plan import StepPlan
from engine.request import PoolingRequest
from engine.resources import Resources
from harness.checkpoints.catalogue import path_of
from suites.invariance.drawn import same_bits
from suites.parity.prompts import MIXED, requests

LIMIT = {torch.float32: 2e-5, torch.float16: 4e-2, torch.bfloat16: 2e-1}
"""Relative L2 of an output against float64. Wide: four layers that amplify what goes in were made
to. The figures are printed; a wrong row is of order 1."""
LAYERS = 4
"""Of the generated checkpoints."""
PATIENCE_S = 300.0
"""For one answer of a worker process, which may have to compile beside others first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way of running the same requests."""

    mode: str = "eager"
    attention: str = "triton"
    kernels: str = "torch"
    dtype: str = "float32"
    chunk: int | None = None
    asynchronous: bool = False
    stages: int = 1
    tensor_ranks: int = 1
    executor: str = "inline"
    inputs: str = "fenced"
    buckets: tuple[int, ...] | None = None
    plugins: tuple[str, ...] = ()


def config(name: str, way: Way) -> EngineConfig:
    return EngineConfig(
        model=path_of(name),
        max_model_len=128,
        device="cuda",
        inputs=way.inputs,
        plugins=way.plugins,
        execution=ExecutionConfig(
            mode=way.mode,
            attention=way.attention,
            kernels=way.kernels,
            dtype=way.dtype,
            graph_buckets=way.buckets,
        ),
        scheduler=SchedulerConfig(
            max_num_batched_tokens=way.chunk or 256,
            max_num_seqs=3,
            chunked_prefill=way.chunk is not None,
            async_scheduling=way.asynchronous,
        ),
        parallel=ParallelConfig(
            pipeline_parallel_size=way.stages,
            tensor_parallel_size=way.tensor_ranks,
            executor=way.executor,
            worker_timeout_s=PATIENCE_S,
        ),
    )


def asked(name: str) -> list[PoolingRequest]:
    wanted = [w for w in MIXED if name != "tiny-bert" or "classify" not in w[1].value]
    return requests(wanted, vocabulary=read_model_config(path_of(name)).vocab_size)


@cache
def resources(name: str, mode: str, attention: str, kernels: str, dtype: str) -> Resources:
    """Weights and compiled block, shared by all engines of one process."""
    way = Way(mode=mode, attention=attention, kernels=kernels, dtype=dtype)
    return Resources(config(name, way))


def run(name: str, way: Way, like: RunResult | None = None, *, ordered: bool = True) -> RunResult:
    """The requests of `asked`, by the steps of `like` if given; `ordered`: without a hazard."""
    inline = way.executor == "inline"
    shared = resources(name, way.mode, way.attention, way.kernels, way.dtype) if inline else None
    plan: Sequence[StepPlan] | None = None if like is None else like.plan
    with Engine(config(name, way), resources=shared) as engine:
        result = engine.run(asked(name), plan=plan)
    assert not result.refused, result.refused
    assert not result.failed, result.failed
    if ordered:
        assert not result.witness.hazards, result.witness.hazards
    return result


@cache
def exact(name: str) -> RunResult:
    """The same requests in float64 on the CPU."""
    execution = ExecutionConfig(attention="naive", dtype="float64")
    with Engine(replace(config(name, Way()), device="cpu", execution=execution)) as engine:
        return engine.run(asked(name))


def errors(found: RunResult, name: str) -> list[float]:
    """Relative L2 of each answer against float64."""
    reference = exact(name).outputs
    return [
        float((o.values.double() - reference[k].values).norm() / reference[k].values.norm())
        for k, o in found.outputs.items()
    ]


def differing(a: RunResult, b: RunResult) -> list[str]:
    """Ids of the requests whose answers are not the same bits."""
    assert a.outputs.keys() == b.outputs.keys(), (sorted(a.outputs), sorted(b.outputs))
    assert a.outputs, "no request was answered: there is nothing to compare"
    return [key for key, o in a.outputs.items() if not same_bits(o.values, b.outputs[key].values)]

"""The engine on a GPU against float64 on the CPU, and against itself under replayed plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch

from engine.config import (
    EXECUTION_MODES,
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
from engine.runner import Runner
from harness.checkpoints.catalogue import path_of
from suites.figures import show
from suites.invariance.drawn import same_bits
from suites.parity.prompts import MIXED, requests

MODELS = ("tiny-qwen3", "tiny-llama", "tiny-bert")
LIMIT = {torch.float32: 2e-5, torch.float16: 4e-2, torch.bfloat16: 2e-1}
"""Relative L2 of an output against float64. Wide: four layers that amplify what goes in were made
to. The figures are printed; a wrong row is of order 1."""


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
    inputs: str = "fenced"
    plugins: tuple[str, ...] = ()


def config(name: str, way: Way) -> EngineConfig:
    return EngineConfig(
        model=path_of(name),
        max_model_len=128,
        device="cuda",
        inputs=way.inputs,
        plugins=way.plugins,
        execution=ExecutionConfig(
            mode=way.mode, attention=way.attention, kernels=way.kernels, dtype=way.dtype
        ),
        scheduler=SchedulerConfig(
            max_num_batched_tokens=way.chunk or 256,
            max_num_seqs=3,
            chunked_prefill=way.chunk is not None,
            async_scheduling=way.asynchronous,
        ),
        parallel=ParallelConfig(pipeline_parallel_size=way.stages),
    )


def asked(name: str) -> list[PoolingRequest]:
    wanted = [w for w in MIXED if name != "tiny-bert" or "classify" not in w[1].value]
    return requests(wanted, vocabulary=read_model_config(path_of(name)).vocab_size)


@cache
def resources(name: str, mode: str, attention: str, kernels: str, dtype: str) -> Resources:
    """Weights and compiled block, shared by all engines of this suite."""
    way = Way(mode=mode, attention=attention, kernels=kernels, dtype=dtype)
    return Resources(config(name, way))


def run(name: str, way: Way, like: RunResult | None = None) -> RunResult:
    shared = resources(name, way.mode, way.attention, way.kernels, way.dtype)
    with Engine(config(name, way), resources=shared) as engine:
        result = engine.run(asked(name), plan=None if like is None else like.plan)
    assert not result.refused, result.refused
    assert not result.witness.hazards, result.witness.hazards
    return result


@cache
def exact(name: str) -> RunResult:
    execution = ExecutionConfig(attention="naive", dtype="float64")
    with Engine(replace(config(name, Way()), device="cpu", execution=execution)) as engine:
        return engine.run(asked(name))


def errors(found: RunResult, name: str) -> list[float]:
    reference = exact(name).outputs
    return [
        float((o.values.double() - reference[k].values).norm() / reference[k].values.norm())
        for k, o in found.outputs.items()
    ]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_float64(name: str, dtype: str) -> None:
    table = []
    for mode in EXECUTION_MODES:
        for attention, kernels in (("sdpa", "torch"), ("triton", "torch"), ("triton", "triton")):
            for chunk in (None, 16) if name != "tiny-bert" else (None,):
                way = Way(mode=mode, attention=attention, kernels=kernels, dtype=dtype, chunk=chunk)
                result = run(name, way)
                if mode != "graph":  # a CUDA graph does not come back to the compiled callable
                    assert (result.witness.compiled_calls > 0) == (mode == "compiled")
                assert bool(result.witness.ranks[0].buckets) == (mode == "graph")
                assert (result.witness.max_chunks > 1) == (chunk is not None)
                found = errors(result, name)
                table.append((mode, attention, kernels, chunk or "whole", max(found)))
    show(
        f"{name}, {dtype}: relative L2 against float64, the largest of {len(found)} answers",
        ("mode", "attention", "kernels", "chunk", "error"),
        table,
    )
    assert max(row[-1] for row in table) <= LIMIT[getattr(torch, dtype)]


@pytest.mark.parametrize("mode", EXECUTION_MODES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("chunk", [None, 16])
def test_the_same_plan_gives_the_same_bits(mode: str, dtype: str, chunk: int | None) -> None:
    name, base = "tiny-qwen3", Way(mode=mode, dtype=dtype, chunk=chunk)
    first = run(name, base)
    for other in (
        base,
        replace(base, asynchronous=True),
        replace(base, stages=2),
        replace(base, stages=2, asynchronous=True, inputs="ring"),
    ):
        again = run(name, other, like=first)
        assert again.witness.plan_digest == first.witness.plan_digest
        for key, output in first.outputs.items():
            assert same_bits(again.outputs[key].values, output.values), (key, other)


def slow_device(runner: Runner) -> Callable[[], None]:
    """A plug-in: the device idles for some milliseconds in every step, so that it lags the host."""
    original = runner.post_step

    def post_step(plan: StepPlan) -> None:
        runner.compute.submit("idle", lambda: torch.cuda._sleep(20_000_000), step=plan.index)
        original(plan)

    runner.post_step = post_step  # type: ignore[method-assign]
    return lambda: runner.__dict__.pop("post_step", None)


def test_steps_overlap_when_scheduling_is_asynchronous() -> None:
    """The host submits a step before the one before it is done; the sync run never does."""
    sync, overlapped = (
        run("tiny-qwen3", Way(chunk=16, asynchronous=on, plugins=(f"{__name__}:slow_device",)))
        .witness.ranks[0]
        .lookahead
        for on in (False, True)
    )
    assert sync == 0
    assert overlapped > 0


def test_answers_arrive_in_memory_of_the_callers_own() -> None:
    result = run("tiny-qwen3", Way(asynchronous=True))
    places = set()
    for output in result.outputs.values():
        assert output.values.device.type == "cpu"
        places.add(output.values.untyped_storage().data_ptr())
    assert len(places) == len(result.outputs)

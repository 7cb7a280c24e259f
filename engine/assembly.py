"""Putting one rank together: stage, execution mode, pooler, runner."""

from __future__ import annotations

import torch

from engine.attention import batch_backend
from engine.collectives import AllReduce
from engine.config import EngineConfig
from engine.errors import ConfigurationError
from engine.execution import CompiledExecution, EagerExecution, Execution, GraphExecution
from engine.execution.compiled import require_compiler
from engine.execution.recording import CudaRecorder, record_on_host
from engine.execution.regions import ONE_RANK, PIECEWISE, TENSOR_RANKS
from engine.links import Link
from engine.memory import RunnerLimits
from engine.placement import Place
from engine.pooling.options import build_pooler
from engine.resources import ResourceKey, Resources
from engine.runner import Runner
from engine.stage import Stage
from engine.stream.base import Device


def build_runner(
    *,
    config: EngineConfig,
    limits: RunnerLimits,
    resources: Resources,
    device: Device,
    place: Place,
    receive_from: Link | None,
    send_to: Link | None,
    all_reduce: AllReduce | None,
) -> Runner:
    """One rank's runner over (shared) resources."""
    if resources.key != ResourceKey.of(config):
        raise ConfigurationError(
            f"shared resources were loaded for {resources.key}, this engine needs "
            f"{ResourceKey.of(config)}; build its own"
        )
    torch.set_num_threads(config.execution.num_threads)
    stage = resources.stage(place)
    pooler = None
    if place.answers:
        pooler = build_pooler(config, stage.model)
    return Runner(
        config=config,
        limits=limits,
        model=stage,
        execution=_execution(config, resources, stage, place),
        device=device,
        rank=place.rank,
        receive_from=receive_from,
        send_to=send_to,
        all_reduce=all_reduce,
        pooler=pooler,
    )


def _execution(config: EngineConfig, resources: Resources, stage: Stage, place: Place) -> Execution:
    options, cuda = config.execution, config.device != "cpu"
    if options.mode == "eager":
        return EagerExecution()
    require_compiler(config.device)
    compiler = resources.compiler(place.tensor_ranks)
    if options.mode == "compiled":
        compiler.prime(stage, ONE_RANK if place.tensor_ranks == 1 else TENSOR_RANKS)
        return CompiledExecution(compiler)
    assert options.graph_buckets is not None, "resolve the configuration first"
    # Only a backend that takes the whole batch leaves the batch's sizes on the device.
    piecewise = cuda and batch_backend(options.attention) is None
    compiler.prime(stage, PIECEWISE if piecewise else ONE_RANK)
    recorder = CudaRecorder() if cuda else record_on_host
    return GraphExecution(compiler, options.graph_buckets, recorder, piecewise=piecewise)

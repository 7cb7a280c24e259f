"""Putting one rank together: stage, execution mode, pooler, runner."""

from __future__ import annotations

import torch

from engine.collectives import AllReduce
from engine.config import EngineConfig
from engine.errors import ConfigurationError
from engine.execution import CompiledExecution, EagerExecution, Execution
from engine.execution.compiled import require_compiler
from engine.links import Link
from engine.placement import Place
from engine.pooling.dispatcher import Pooler
from engine.pooling.options import build_heads, read_pooling_options
from engine.resources import ResourceKey, Resources
from engine.runner import Runner, RunnerLimits
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
    execution: Execution
    if config.execution.mode == "compiled":
        require_compiler(config.device)
        compiler = resources.compiler(place.tensor_ranks)
        if not compiler.graphs:
            compiler.prime(stage, tensor_parallel=place.tensor_ranks > 1)
        execution = CompiledExecution(compiler)
    else:
        execution = EagerExecution()
    pooler = None
    if place.answers:
        options = read_pooling_options(config, stage.config)
        pooler = Pooler(
            options.method,
            options.tasks,
            build_heads(options, stage.model),
            overlaps_steps=config.overlaps_steps,
        )
    return Runner(
        config=config,
        limits=limits,
        model=stage,
        execution=execution,
        device=device,
        rank=place.rank,
        receive_from=receive_from,
        send_to=send_to,
        all_reduce=all_reduce,
        pooler=pooler,
    )

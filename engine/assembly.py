"""Putting one rank together: stage, execution mode, pooler, runner."""

from __future__ import annotations

import torch

from engine.config import EngineConfig
from engine.errors import ConfigurationError
from engine.execution import CompiledExecution, EagerExecution, Execution
from engine.execution.compiled import require_compiler
from engine.links import Link
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
    rank: int,
    receive_from: Link | None,
    send_to: Link | None,
) -> Runner:
    """One rank's runner over (shared) resources."""
    if resources.key != ResourceKey.of(config):
        raise ConfigurationError(
            f"shared resources were loaded for {resources.key}, this engine needs "
            f"{ResourceKey.of(config)}; build its own"
        )
    torch.set_num_threads(config.execution.num_threads)
    execution: Execution
    if config.execution.mode == "compiled":
        require_compiler(config.device)
        if not resources.compiler.graphs:
            resources.compiler.prime(resources.stage(config.parallel.pipeline_parallel_size, rank))
        execution = CompiledExecution(resources.compiler)
    else:
        execution = EagerExecution()
    pooler = None
    if send_to is None:
        options = read_pooling_options(config, resources.model.config)
        pooler = Pooler(
            options.method,
            options.tasks,
            build_heads(options, resources.model),
            overlaps_steps=config.overlaps_steps,
        )
    return Runner(
        config=config,
        limits=limits,
        model=resources.stage(config.parallel.pipeline_parallel_size, rank),
        execution=execution,
        device=device,
        rank=rank,
        receive_from=receive_from,
        send_to=send_to,
        pooler=pooler,
    )

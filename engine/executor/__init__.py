"""Where ranks run: the table of executors."""

from __future__ import annotations

from engine.config import EngineConfig
from engine.executor.base import Executor, RunAccount
from engine.executor.inline import InlineExecutor
from engine.executor.processes import ProcessExecutor
from engine.executor.torchrun import TorchrunExecutor
from engine.memory import RunnerLimits
from engine.resources import Resources

__all__ = ["Executor", "InlineExecutor", "ProcessExecutor", "RunAccount", "create_executor"]


def create_executor(
    config: EngineConfig, limits: RunnerLimits, resources: Resources | None = None
) -> Executor:
    """The executor `config.parallel.executor` names; plug-ins are applied before it returns."""
    if config.parallel.executor == "processes":
        return ProcessExecutor(config, limits)
    if config.parallel.executor == "torchrun":
        return TorchrunExecutor(config, limits)
    return InlineExecutor(config, limits, resources or Resources(config))

"""What engines of one process may share: read-only weights and compiled callables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.config import EngineConfig
from engine.execution.compiled import Compiler
from engine.models.base import Model
from engine.models.config import read_model_config
from engine.models.loader import load_model
from engine.stage import Stage, stage_layers


@dataclass(frozen=True, slots=True)
class ResourceKey:
    """Two engines may share weights when these agree."""

    model: Path
    dtype: str
    attention: str
    batch_invariant: bool
    device: str

    @classmethod
    def of(cls, config: EngineConfig) -> ResourceKey:
        execution = config.execution
        return cls(
            config.model,
            execution.dtype,
            execution.attention,
            execution.batch_invariant,
            config.device,
        )


class Resources:
    """Owns: one loaded model (or one stage of it) and the compiler for its blocks.

    Hand the same object to several engines of one process and they share both; a configuration
    that needs other weights is refused.
    """

    def __init__(self, config: EngineConfig, *, rank: int | None = None) -> None:
        """Load the whole model, or with `rank` only that rank's stage."""
        self.key = ResourceKey.of(config)
        torch.set_num_threads(config.execution.num_threads)
        layers = None
        if rank is not None:
            num_layers = read_model_config(config.model).num_layers
            layers = stage_layers(num_layers, config.parallel.pipeline_parallel_size, rank)
        self.model: Model = load_model(
            config.model,
            dtype=config.execution.dtype,
            layers=layers,
            attention=config.execution.attention,
            batch_invariant=config.execution.batch_invariant,
        )
        if config.device != "cpu":
            self.model = self.model.to(config.device)
        self.compiler = Compiler()

    def stage(self, num_stages: int, rank: int) -> Stage:
        """Rank `rank`'s layers of the shared model."""
        return Stage(self.model, stage_layers(self.model.config.num_layers, num_stages, rank))

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
from engine.placement import Place
from engine.stage import Stage, stage_layers


@dataclass(frozen=True, slots=True)
class ResourceKey:
    """Two engines may share weights when these agree."""

    model: Path
    dtype: str
    attention: str
    kernels: str
    batch_invariant: bool
    device: str

    @classmethod
    def of(cls, config: EngineConfig) -> ResourceKey:
        execution = config.execution
        return cls(
            config.model,
            execution.dtype,
            execution.attention,
            execution.kernels,
            execution.batch_invariant,
            config.device,
        )


class Resources:
    """Owns: the loaded model, or each tensor rank's part of it, and the compilers of their blocks.

    Hand the same object to several engines of one process and they share both; a configuration
    that needs other weights is refused.
    """

    def __init__(self, config: EngineConfig, *, rank: int | None = None) -> None:
        """Load what every rank of the configuration needs, or with `rank` what that one does."""
        self.key = ResourceKey.of(config)
        torch.set_num_threads(config.execution.num_threads)
        self._config = config
        self._models: dict[tuple[int, int], Model] = {}
        self._compilers: dict[int, Compiler] = {}
        if rank is None:
            for tensor_rank in range(config.parallel.tensor_parallel_size):
                self._model(tensor_rank, config.parallel.tensor_parallel_size, None)
        else:
            place = Place.of(config.parallel, rank)
            num_layers = read_model_config(config.model).num_layers
            layers = stage_layers(num_layers, place.num_stages, place.stage)
            self._model(place.tensor_rank, place.tensor_ranks, layers)

    def stage(self, place: Place) -> Stage:
        """A rank's part of its stage's layers; its model is loaded if no engine needed it yet."""
        model = self._model(place.tensor_rank, place.tensor_ranks, None)
        layers = stage_layers(model.config.num_layers, place.num_stages, place.stage)
        return Stage(model, layers)

    def compiler(self, tensor_ranks: int = 1) -> Compiler:
        """The compiler of the blocks of a model divided over so many ranks: they are alike."""
        return self._compilers.setdefault(tensor_ranks, Compiler())

    def _model(self, tensor_rank: int, tensor_ranks: int, layers: range | None) -> Model:
        key = (tensor_rank, tensor_ranks)
        if key not in self._models:
            config = self._config
            self._models[key] = load_model(
                config.model,
                dtype=config.execution.dtype,
                layers=layers,
                attention=config.execution.attention,
                kernels=config.execution.kernels,
                batch_invariant=config.execution.batch_invariant,
                tensor_rank=tensor_rank,
                tensor_ranks=tensor_ranks,
                device=config.device,
            )
        return self._models[key]

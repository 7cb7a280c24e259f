"""One pipeline stage's view of a model that several ranks and engines may share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.models.base import Block, Model
from engine.models.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers `layers` of `model`, which holds at least those. Read-only."""

    model: Model
    layers: range

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def first_layer(self) -> int:
        return self.layers.start

    @property
    def blocks(self) -> Sequence[Block]:
        first = self.model.first_layer
        blocks: list[Block] = list(self.model.blocks)  # type: ignore[arg-type]  # ModuleList
        return blocks[self.layers.start - first : self.layers.stop - first]

    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        return self.model.embed(token_ids, type_ids, positions)

    def rotary(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.model.rotary(positions)

    def final_norm(self, x: torch.Tensor) -> torch.Tensor:
        return self.model.final_norm(x)


def stage_layers(num_layers: int, num_stages: int, rank: int) -> range:
    """Layers of stage `rank`: as even as can be, the remainder to the first stages."""
    base, extra = divmod(num_layers, num_stages)
    start = rank * base + min(rank, extra)
    return range(start, start + base + int(rank < extra))

"""The contract of heads, and of the specs that build them."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.pooling.weights import HeadWeights
from engine.request import PoolingParams


class Head(Protocol):
    """Arithmetic on pooled rows; the request's parameters have been checked for its task."""

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        """[n, D] -> [m, outputs]; m is n, or 1 where the head reads all rows for one answer."""
        ...


class HeadSpec(Protocol):
    """What a checkpoint says of a head; frozen, and free of weights."""

    @property
    def width(self) -> int:
        """Values of one row of the answer; 0 where only the weights know."""
        ...

    @property
    def parameters(self) -> frozenset[str]:
        """Fields of `PoolingParams` that this head reads."""
        ...

    def build(self, weights: HeadWeights) -> Head:
        """Raises CheckpointError for tensors that are missing or of another shape."""
        ...

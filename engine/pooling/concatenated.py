"""Several sequence-level methods side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.pooling.base import PoolingBatch, PoolingMethod


class ConcatenatedPooling:
    """Rows [1, D] of each method, joined in order to [1, k * D] of the widest dtype among them.

    Every method has a store of its own, since they retain under the same request.
    """

    def __init__(self, methods: Sequence[PoolingMethod]) -> None:
        self._methods = tuple(methods)

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        found = [method(hidden, batch, members) for method in self._methods]
        return {i: torch.cat([rows[i] for rows in found], dim=-1) for i in found[0]}

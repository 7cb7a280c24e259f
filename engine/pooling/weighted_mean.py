"""WEIGHTED_MEAN: later tokens count for more (SGPT, arXiv:2202.08904, section 3.1)."""

from __future__ import annotations

import torch

from engine.pooling.base import PoolingEntry
from engine.pooling.mean import MeanPooling


class WeightedMeanPooling(MeanPooling):
    """sentence-transformers' `weightedmean`: token at position p (from 0) has weight p + 1.

    Tokens left out keep their places: the first pooled one weighs `prompt_tokens` + 1.
    """

    def divisor(self, entry: PoolingEntry) -> float:
        def up_to(count: int) -> int:
            return count * (count + 1) // 2

        return up_to(entry.end) - up_to(entry.skipped)

    def weights(self, first: int, count: int, device: torch.device) -> torch.Tensor:
        return torch.arange(first + 1, first + count + 1, device=device).unsqueeze(1)

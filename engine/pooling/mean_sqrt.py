"""MEAN_SQRT: the sum over the prompt's tokens by the root of their number."""

from __future__ import annotations

import math

from engine.pooling.base import PoolingEntry
from engine.pooling.mean import MeanPooling


class MeanSqrtPooling(MeanPooling):
    """sentence-transformers' `mean_sqrt_len_tokens`; sums as MEAN does."""

    def divisor(self, entry: PoolingEntry) -> float:
        return math.sqrt(super().divisor(entry))

"""MAX: the largest value of each dimension over the prompt's tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.pooling.base import PoolingBatch
from engine.pooling.retention import ChunkStore


class MaxPooling:
    """Exact in any order. Retains one row [1, D] of each unfinished prompt."""

    def __init__(self, store: ChunkStore) -> None:
        self._store = store

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        finished = {}
        for i in members:
            entry = batch.entries[i]
            self._store.expect(entry.request_id, retained=entry.start > 0)
            rows = entry.rows_of(hidden)[max(entry.skipped - entry.start, 0) :]
            if entry.start:
                rows = torch.cat([*self._store.take(entry.request_id), rows])
            # amax allocates; of no rows yet it keeps none.
            highest = rows.amax(0, keepdim=True) if rows.shape[0] else rows.clone()
            if entry.finishes:
                finished[i] = highest
            else:
                self._store.append(entry.request_id, highest)
        return finished

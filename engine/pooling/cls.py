"""CLS: the hidden state of the prompt's first token."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.pooling.base import PoolingBatch, gather_rows
from engine.pooling.retention import ChunkStore


class ClsPooling:
    """Picks the first row of each prompt, which is in its first chunk.

    The row's index comes from the device's row offsets: entry i begins at row_offsets[i].
    Retains one owned row [1, D] for each prompt of several chunks.
    """

    def __init__(self, store: ChunkStore) -> None:
        self._store = store

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        first = [i for i in members if batch.entries[i].start == 0]
        rows = gather_rows(hidden, batch.row_offsets[:-1]) if first else hidden[:0]
        finished = {}
        for i in members:
            entry = batch.entries[i]
            self._store.expect(entry.request_id, retained=entry.start > 0)
            if entry.start == 0 and not entry.finishes:
                # A copy of one row, so that a long prompt does not keep all S gathered rows alive.
                self._store.append(entry.request_id, rows[i : i + 1].clone())
            elif entry.start == 0:
                finished[i] = rows[i : i + 1]
            elif entry.finishes:
                (finished[i],) = self._store.take(entry.request_id)
        return finished

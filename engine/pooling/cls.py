"""CLS: the hidden state of the prompt's first token."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.pooling.base import PoolingBatch, gather_rows
from engine.pooling.retention import ChunkStore


class ClsPooling:
    """Picks the first row of each prompt that is not left out; it is in some chunk, once.

    The row's index comes from the device's row offsets: entry i begins at row_offsets[i].
    Retains one owned row [1, D] for each prompt of several chunks, empty [0, D] until it came.
    """

    def __init__(self, store: ChunkStore) -> None:
        self._store = store

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        found = self._first_rows(hidden, batch, members)
        finished = {}
        for i in members:
            entry = batch.entries[i]
            self._store.expect(entry.request_id, retained=entry.start > 0)
            row = found.get(i, hidden[:0])
            if entry.start:
                (before,) = self._store.take(entry.request_id)
                row = before if before.shape[0] else row
            if entry.finishes:
                finished[i] = row
            else:
                # A copy of one row, so that a long prompt does not keep all S gathered rows alive.
                self._store.append(entry.request_id, row.clone())
        return finished

    def _first_rows(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Row [1, D] of every member whose first pooled token is in this step."""
        entries = batch.entries
        first = [i for i in members if entries[i].start <= entries[i].skipped < entries[i].end]
        if not first:
            return {}
        index = batch.row_offsets[:-1]
        ahead = [max(entry.skipped - entry.start, 0) for entry in entries]
        if any(ahead):
            index = index + torch.tensor(ahead, device=index.device)
        rows = gather_rows(hidden, index)
        return {i: rows[i : i + 1] for i in first}

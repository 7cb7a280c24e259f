"""STEP and MARKERS: rows at chosen tokens of the prompt."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from engine.pooling.base import PoolingBatch
from engine.pooling.retention import ChunkStore


class SelectedPooling:
    """Picks the rows whose token is one of `token_ids`, in the prompt's order: a process reward's
    step tags, a listwise reranker's markers.

    Which rows these are is known on the host. What is picked is a copy, hence owned; chunks retain
    the picked rows only, so memory grows with the tags and not with the prompt.
    """

    def __init__(self, store: ChunkStore, token_ids: Collection[int]) -> None:
        self._store, self._token_ids = store, frozenset(token_ids)

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        finished = {}
        for i in members:
            entry = batch.entries[i]
            self._store.expect(entry.request_id, retained=entry.start > 0)
            piece = entry.request.token_ids[entry.start : entry.end]
            places = [row for row, token in enumerate(piece, entry.row) if token in self._token_ids]
            index = torch.tensor(places, dtype=torch.int64, device=hidden.device)
            self._store.append(entry.request_id, hidden.index_select(0, index))
            if entry.finishes:
                chunks = self._store.take(entry.request_id)
                finished[i] = chunks[0] if len(chunks) == 1 else torch.cat(chunks)
        return finished

"""ALL: the hidden states of all of the prompt's tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.errors import LedgerError
from engine.pooling.base import PoolingBatch
from engine.pooling.retention import ChunkStore


class AllPooling:
    """Splits the batch by the lengths the host scheduled; the device is never waited for.

    Retains every chunk of an unfinished prompt: n x D elements, growing with the prompt, and
    once more as much while they are joined. `own` decides what is copied; it is looked up on the
    instance at every call, so that it can be replaced there.
    """

    def __init__(self, store: ChunkStore, *, overlaps_steps: bool) -> None:
        self._store = store
        self._overlaps_steps = overlaps_steps

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        finished = {}
        for i in members:
            entry = batch.entries[i]
            self._store.expect(entry.request_id, retained=entry.start > 0)
            self._store.append(
                entry.request_id,
                self.own(
                    entry.rows_of(hidden),
                    finishes=entry.finishes,
                    retained=self._store.count(entry.request_id),
                    overlaps_steps=self._overlaps_steps,
                ),
            )
            if not entry.finishes:
                continue
            chunks = self._store.take(entry.request_id)
            finished[i] = chunks[0] if len(chunks) == 1 else torch.cat(chunks)
            if finished[i].shape[0] != entry.end:
                raise LedgerError(
                    f"request {entry.request_id!r}: expected {entry.end} token rows, "
                    f"got {[c.shape[0] for c in chunks]} in {len(chunks)} chunks"
                )
        return finished

    def own(
        self, rows: torch.Tensor, *, finishes: bool, retained: int, overlaps_steps: bool
    ) -> torch.Tensor:
        """A copy of `rows` [count, D], or `rows` itself, borrowed from the hidden states.

        `retained`: how many earlier chunks of the request are retained. Copied when

        - the prompt is unfinished: the next step writes the hidden states before the rows are
          read again; or
        - steps overlap and nothing is retained yet: the next step may write them before the copy
          to the host has read them. With something retained, joining the chunks copies anyway.

        An unchunked prompt finishes with nothing retained, hence is copied iff steps overlap.
        """
        if not finishes or (overlaps_steps and retained == 0):
            return rows.clone()
        return rows

"""MEAN: the average hidden state over the prompt's tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.pooling.base import PoolingBatch, PoolingEntry
from engine.pooling.retention import ChunkStore

TILE = 64
"""Tokens a tile sums; a power of two, so that a tile halves down to one row."""


class MeanPooling:
    """Sums in tiles of `TILE` tokens anchored at position 0, then divides by the tokens summed.

    Addition is not associative, so the order is fixed by absolute position alone: a tile is
    halved elementwise (row j + row j + TILE/2, and so on), and tile sums are added first to last.
    Only elementwise additions are used, never a reduction kernel whose order a library, a thread
    count or a chunk size may choose. Sums are float32, or float64 when the hidden states are.
    Rows left out count as zeros, which adds exactly.

    Memory: a prompt of several chunks retains its running sum [1, D] and the rows of the tile it
    is in (at most TILE - 1), whatever its length.
    """

    def __init__(self, store: ChunkStore) -> None:
        self._store = store

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        finished = {}
        for i in members:
            entry = batch.entries[i]
            total, rest = self._advance(entry, self._weighed(entry, entry.rows_of(hidden)))
            if entry.finishes:
                if rest.shape[0]:
                    total = total + _tile_sums(_pad_to_tile(rest))[0]
                finished[i] = total / self.divisor(entry)
            else:
                self._store.append(entry.request_id, total)
                # A copy: `rest` views this step's rows, or a concatenation many times its size.
                self._store.append(entry.request_id, rest.clone())
        return finished

    def divisor(self, entry: PoolingEntry) -> float:
        """What a finished prompt's sum is divided by."""
        return entry.end - entry.skipped

    def weights(self, first: int, count: int, device: torch.device) -> torch.Tensor | None:
        """Factor [count, 1] of each token from position `first` on; None: all one."""
        del first, count, device
        return None

    def _weighed(self, entry: PoolingEntry, rows: torch.Tensor) -> torch.Tensor:
        factors = self.weights(entry.start, entry.count, rows.device)
        if factors is not None:
            wide = torch.promote_types(rows.dtype, torch.float32)
            rows = rows.to(wide) * factors.to(wide)
        left_out = min(max(entry.skipped - entry.start, 0), entry.count)
        if left_out:
            rows = torch.cat([torch.zeros_like(rows[:left_out]), rows[left_out:]])
        return rows

    def _advance(
        self, entry: PoolingEntry, rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sum [1, D] of all tiles that are full by now, and the rows of the one that is not."""
        self._store.expect(entry.request_id, retained=entry.start > 0)
        wide = torch.promote_types(rows.dtype, torch.float32)
        if entry.start:
            total, before = self._store.take(entry.request_id)
            rows = torch.cat([before, rows])
        else:
            total = torch.zeros(1, rows.shape[1], dtype=wide, device=rows.device)
        full = rows.shape[0] // TILE * TILE
        if full:
            for tile in _tile_sums(rows[:full].to(wide)):
                total = total + tile
        return total, rows[full:]


def _pad_to_tile(rows: torch.Tensor) -> torch.Tensor:
    """`rows` [n < TILE, D] over rows of zeros, [TILE, D]; adding zero is exact."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    tile = torch.zeros(TILE, rows.shape[1], dtype=wide, device=rows.device)
    tile[: rows.shape[0]] = rows
    return tile


def _tile_sums(rows: torch.Tensor) -> torch.Tensor:
    """Sums of consecutive tiles: [k * TILE, D] -> [k, 1, D]."""
    tiles = rows.view(-1, TILE, rows.shape[1])
    width = TILE
    while width > 1:
        width //= 2
        tiles = tiles[:, :width] + tiles[:, width:]
    return tiles

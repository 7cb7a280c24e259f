"""Sums and means over runs of rows, in tiles of rows that start at each run's first row.

A tile is halved elementwise (row j + row j + TILE / 2, and so on) and tile sums are added first to
last: the order of `engine.pooling.mean`, so the bits are those of its PyTorch code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import torch
import triton
import triton.language as tl

TILE: Final = 64
"""Rows of a tile; a power of two."""
LANES: Final = 64


@triton.jit
def _halve(rows: tl.tensor, count: tl.constexpr, lanes: tl.constexpr) -> tl.tensor:
    """[count, lanes] -> [count / 2, lanes]: row j + row j + count / 2."""
    pairs = tl.permute(tl.reshape(rows, [2, count // 2, lanes]), [1, 2, 0])
    low, high = tl.split(pairs)
    return low + high


@triton.jit
def _segment_sums(
    rows: tl.tensor,
    offsets: tl.tensor,
    initial: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    stride: tl.tensor,
    dim: tl.tensor,
    lanes: tl.constexpr,
) -> None:
    segment = tl.program_id(0).to(tl.int64)
    lane = tl.program_id(1) * lanes + tl.arange(0, lanes)
    inside = lane < dim
    first = tl.minimum(tl.maximum(tl.load(offsets + segment), 0), num_rows)
    stop = tl.minimum(tl.maximum(tl.load(offsets + segment + 1), 0), num_rows)
    total = tl.load(initial + segment * dim + lane, mask=inside, other=0.0)
    for start in range(first, stop, 64):
        row = start + tl.arange(0, 64)
        tile = tl.load(
            rows + row.to(tl.int64)[:, None] * stride + lane[None, :],
            mask=(row < stop)[:, None] & inside[None, :],
            other=0.0,
        ).to(tl.float32)
        tile = _halve(tile, 64, lanes)
        tile = _halve(tile, 32, lanes)
        tile = _halve(tile, 16, lanes)
        tile = _halve(tile, 8, lanes)
        tile = _halve(tile, 4, lanes)
        tile = _halve(tile, 2, lanes)
        total += tl.reshape(tile, [lanes])
    tl.store(out + segment * dim + lane, total, mask=inside)


def segment_sums(
    rows: torch.Tensor, offsets: torch.Tensor, initial: torch.Tensor | None = None
) -> torch.Tensor:
    """initial[s] + the sum of rows offsets[s] .. offsets[s + 1] - 1, float32 [S, D].

    Shapes: rows [T, D], offsets [S + 1] int64, initial [S, D] float32 or None for zero. A run that
    goes on in a later call gives the same bits if every call but the last has whole tiles of it.
    """
    segments, dim = offsets.shape[0] - 1, rows.shape[1]
    out = torch.empty(segments, dim, dtype=torch.float32, device=rows.device)
    if initial is None:
        initial = torch.zeros_like(out)
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    if segments and dim:
        _segment_sums[(segments, triton.cdiv(dim, LANES))](
            rows, offsets, initial, out, rows.shape[0], rows.stride(0), dim, lanes=LANES
        )
    return out


def segment_mean(rows: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Means over runs of rows, float32 [S, D]; a run of no rows is zero."""
    return segment_sums(rows, offsets) / _lengths(rows, offsets)


def segment_mean_reference(rows: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """`segment_mean` in PyTorch, one run at a time."""
    bounds = offsets.clamp(0, rows.shape[0]).tolist()
    means = []
    for first, stop in pairwise(bounds):
        total = torch.zeros(rows.shape[1], dtype=torch.float32, device=rows.device)
        for start in range(first, stop, TILE):
            tile = torch.zeros(TILE, rows.shape[1], dtype=torch.float32, device=rows.device)
            tile[: min(stop - start, TILE)] = rows[start : min(start + TILE, stop)]
            while tile.shape[0] > 1:
                low, high = tile.chunk(2)
                tile = low + high
            total = total + tile[0]
        means.append(total)
    return torch.stack(means) / _lengths(rows, offsets)


def _lengths(rows: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    bounds = offsets.clamp(0, rows.shape[0])
    return (bounds[1:] - bounds[:-1]).clamp(min=1).to(torch.float32)[:, None]

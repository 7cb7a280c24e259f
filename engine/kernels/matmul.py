"""x W^T + b in tiles of fixed size: a row's bits do not depend on how many rows there are.

A library's product picks another kernel, and another order of sums, for another number of rows.
Here every product of one dtype is cut the same way, sums run over K from its start to its end, and
no K is split. Rows of a tile do not meet in a matrix unit, so a row may have any company.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
import triton
import triton.language as tl

DTYPES: Final = (torch.float32, torch.bfloat16, torch.float16)


class Tiles(NamedTuple):
    """How a product is cut."""

    rows: int
    columns: int
    inner: int
    warps: int
    stages: int


HALF_TILES: Final = Tiles(rows=128, columns=128, inner=64, warps=8, stages=3)
FLOAT_TILES: Final = Tiles(rows=32, columns=64, inner=32, warps=4, stages=2)
"""float32 takes no tensor cores: tf32 would round the inputs."""
BAND: Final = 8
"""Tiles of rows that run next to each other, so that they find a weight tile in the L2 cache."""


@triton.jit
def _matmul(
    x: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    x_row: tl.tensor,
    weight_row: tl.tensor,
    inner: tl.constexpr,
    has_bias: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
    tile_inner: tl.constexpr,
    band: tl.constexpr,
    precision: tl.constexpr,
) -> None:
    down, across = tl.cdiv(rows, tile_rows), tl.cdiv(columns, tile_columns)
    tile = tl.program_id(0)
    per_band = band * across
    first = tile // per_band * band
    height = tl.minimum(down - first, band)
    within = tile % per_band
    row = (first + within % height) * tile_rows + tl.arange(0, tile_rows)
    column = (within // height) * tile_columns + tl.arange(0, tile_columns)
    # Rows and columns beyond the end read some that exist, and are not stored.
    from_x = x + (row % rows).to(tl.int64)[:, None] * x_row
    from_weight = weight + (column % columns).to(tl.int64)[None, :] * weight_row
    acc = tl.zeros([tile_rows, tile_columns], tl.float32)
    for start in range(0, inner, tile_inner):
        k = start + tl.arange(0, tile_inner)
        if inner % tile_inner == 0:
            left = tl.load(from_x + k[None, :])
            right = tl.load(from_weight + k[:, None])
        else:
            left = tl.load(from_x + k[None, :], mask=(k < inner)[None, :], other=0.0)
            right = tl.load(from_weight + k[:, None], mask=(k < inner)[:, None], other=0.0)
        acc = tl.dot(left, right, acc, input_precision=precision)
    if has_bias:
        acc += tl.load(bias + column, mask=column < columns, other=0.0).to(tl.float32)[None, :]
    tl.store(
        out + row.to(tl.int64)[:, None] * columns + column[None, :],
        acc.to(out.dtype.element_ty),
        mask=(row < rows)[:, None] & (column < columns)[None, :],
    )


def matmul(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    tiles: Tiles | None = None,
) -> torch.Tensor:
    """x W^T + b, summed in float32. Shapes: x [n, K], weight [N, K], bias [N] -> [n, N].

    The reference is `torch.nn.functional.linear`.
    """
    (rows, inner), columns = x.shape, weight.shape[0]
    out = x.new_empty(rows, columns)
    if rows == 0:
        return out
    x = x if x.stride(1) == 1 else x.contiguous()
    weight = weight if weight.stride(1) == 1 else weight.contiguous()
    tiles = tiles or (FLOAT_TILES if x.dtype == torch.float32 else HALF_TILES)
    grid = (triton.cdiv(rows, tiles.rows) * triton.cdiv(columns, tiles.columns),)
    _matmul[grid](
        x,
        weight,
        x if bias is None else bias,
        out,
        rows,
        columns,
        x.stride(0),
        weight.stride(0),
        inner=inner,
        has_bias=bias is not None,
        tile_rows=tiles.rows,
        tile_columns=tiles.columns,
        tile_inner=tiles.inner,
        band=BAND,
        precision="ieee",
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    return out

"""Root-mean-square normalisation, with the residual added on the way: one pass over memory.

A program holds whole rows, so a row's mean is summed in the same order whatever rows there are.
"""

from __future__ import annotations

from typing import Final

import torch
import triton
import triton.language as tl

from engine.layers.norm import rms_norm as rms_norm_of

VALUES: Final = 2048
"""Values that one program holds, unless a single row has more."""


@triton.jit
def _rms_norm(
    x: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    normed: tl.tensor,
    summed: tl.tensor,
    rows: tl.tensor,
    inner_rows: tl.tensor,
    outer: tl.tensor,
    inner: tl.tensor,
    eps: tl.tensor,
    dim: tl.constexpr,
    width: tl.constexpr,
    tile_rows: tl.constexpr,
    has_residual: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    lanes = tl.arange(0, width)
    inside = (row < rows)[:, None] & (lanes < dim)[None, :]
    at = (row // inner_rows) * outer + (row % inner_rows) * inner
    to = row[:, None] * dim + lanes[None, :]
    values = tl.load(x + at[:, None] + lanes[None, :], mask=inside, other=0.0)
    if has_residual:
        # Rounded to the model's dtype before it is used, as a sum of its own would be.
        more = tl.load(residual + to, mask=inside, other=0.0)
        values = (values.to(tl.float32) + more.to(tl.float32)).to(values.dtype)
        tl.store(summed + to, values, mask=inside)
    wide = values.to(tl.float32)
    mean = tl.sum(wide * wide, 1) / dim
    scale = 1.0 / tl.sqrt_rn(mean + eps)
    by = tl.load(weight + lanes, mask=lanes < dim, other=0.0)
    rounded = (wide * scale[:, None]).to(values.dtype).to(tl.float32)
    out = rounded * by.to(tl.float32)[None, :]
    tl.store(normed + to, out.to(normed.dtype.element_ty), mask=inside)


def _launch(
    x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    dim = x.shape[-1]
    if x.dim() > 3 or x.stride(-1) != 1:
        x = x.contiguous()
    rows = x.numel() // dim
    normed = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    summed = normed if residual is None else torch.empty_like(normed)
    if rows == 0:
        return normed, summed
    inner_rows = x.shape[-2] if x.dim() == 3 else 1
    outer = x.stride(0) if x.dim() > 1 else dim
    inner = x.stride(-2) if x.dim() == 3 else 0
    if x.dim() > 3:
        inner_rows, outer, inner = 1, dim, 0
    width = triton.next_power_of_2(dim)
    tile_rows = max(VALUES // width, 1)
    _rms_norm[(triton.cdiv(rows, tile_rows),)](
        x,
        x if residual is None else residual.contiguous(),
        weight,
        normed,
        summed,
        rows,
        inner_rows,
        outer,
        inner,
        eps,
        dim=dim,
        width=width,
        tile_rows=tile_rows,
        has_residual=residual is not None,
        num_warps=4,
    )
    return normed, summed


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """As `engine.layers.norm.rms_norm`, which is the reference. x [..., D], weight [D]."""
    return _launch(x, None, weight, eps)[0]


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(norm of x + residual, x + residual); both [..., D], as x and the residual."""
    return _launch(x, residual, weight, eps)


def add_rms_norm_reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """`add_rms_norm` in PyTorch."""
    summed = x + residual
    return rms_norm_of(summed, weight, eps), summed

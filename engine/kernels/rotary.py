"""Rotary position embedding of all heads of a row in one pass."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _rotate(
    x: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    out: tl.tensor,
    x_row: tl.tensor,
    x_head: tl.tensor,
    angle_row: tl.tensor,
    heads: tl.constexpr,
    half: tl.constexpr,
    tile_heads: tl.constexpr,
    width: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    head, lane = tl.arange(0, tile_heads), tl.arange(0, width)
    inside = (head < heads)[:, None] & (lane < half)[None, :]
    at = x + row * x_row + head[:, None] * x_head + lane[None, :]
    to = out + (row * heads + head[:, None]) * 2 * half + lane[None, :]
    first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(at + half, mask=inside, other=0.0).to(tl.float32)
    angle = row * angle_row + lane
    kept = lane < half
    cos_1 = tl.load(cos + angle, mask=kept, other=0.0).to(tl.float32)[None, :]
    sin_1 = tl.load(sin + angle, mask=kept, other=0.0).to(tl.float32)[None, :]
    cos_2 = tl.load(cos + angle + half, mask=kept, other=0.0).to(tl.float32)[None, :]
    sin_2 = tl.load(sin + angle + half, mask=kept, other=0.0).to(tl.float32)[None, :]
    kind = out.dtype.element_ty
    tl.store(to, (first * cos_1 - second * sin_1).to(kind), mask=inside)
    tl.store(to + half, (second * cos_2 + first * sin_2).to(kind), mask=inside)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """As `engine.layers.rotary.rotate`, which is the reference, rounded once and not three times.

    Shapes: x [T, H, d], cos and sin [T, d].
    """
    rows, heads, dim = x.shape
    x = x if x.stride(2) == 1 else x.contiguous()
    cos, sin = cos.contiguous(), sin.contiguous()
    out = torch.empty((rows, heads, dim), dtype=x.dtype, device=x.device)
    if rows:
        _rotate[(rows,)](
            x,
            cos,
            sin,
            out,
            x.stride(0),
            x.stride(1),
            cos.stride(0),
            heads=heads,
            half=dim // 2,
            tile_heads=triton.next_power_of_2(heads),
            width=triton.next_power_of_2(dim // 2),
        )
    return out

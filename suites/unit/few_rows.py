"""A processor whose products of few rows take another kernel, on every processor.

On AVX2, MKL's products of 1 to 3 rows and the last, incomplete tile of eight rows in attention are
summed in another order; on AVX-512 they are not, and what pads them could be taken out unnoticed.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

FEW = 4
TILE = 8

_linear, _attention = F.linear, F.scaled_dot_product_attention


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put it in place for one test."""
    monkeypatch.setattr(F, "linear", linear)
    monkeypatch.setattr(F, "scaled_dot_product_attention", attention)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """The product; fewer than FEW rows are summed from the other end."""
    if x.shape[0] >= FEW:
        return _linear(x, weight, bias)
    wide = F.pad(x.flip(-1), (0, 0, 0, TILE))
    return _linear(wide, weight.flip(-1), bias)[: x.shape[0]]


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, attn_mask: torch.Tensor, **options: Any
) -> torch.Tensor:
    """Attention; the rows of an incomplete tile see the keys from the other end."""
    rows = q.shape[-2]
    tail = rows % TILE
    if not tail:
        return _attention(q, k, v, attn_mask=attn_mask, **options)
    last = F.pad(q[..., rows - tail :, :], (0, 0, 0, TILE - tail))
    mask = F.pad(attn_mask[..., rows - tail :, :], (0, 0, 0, TILE - tail), value=True)
    end = _attention(last, k.flip(-2), v.flip(-2), attn_mask=mask.flip(-1), **options)
    if rows == tail:
        return end[..., :tail, :]
    start = _attention(
        q[..., : rows - tail, :],
        k,
        v,
        attn_mask=attn_mask[..., : rows - tail, :],
        **options,
    )
    return torch.cat((start, end[..., :tail, :]), dim=-2)

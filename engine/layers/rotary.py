"""Rotary position embedding (arXiv:2104.09864), in the half-split layout of checkpoints."""

from __future__ import annotations

import torch


def inverse_frequencies(head_dim: int, theta: float) -> torch.Tensor:
    """theta^(-2i / head_dim) for i < head_dim / 2, float32 [head_dim / 2]."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    return 1.0 / theta**exponents


def rotary_table(
    positions: torch.Tensor, frequencies: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of position x frequency, each frequency twice.

    The angles are float32 whatever the model's dtype: they are part of its definition, and more
    exact ones would be those of another model.
    Shapes: positions [T] int64, frequencies [d / 2] -> two [T, d] of `dtype`.
    """
    half = positions.to(torch.float32)[:, None] * frequencies[None, :]
    angles = torch.cat((half, half), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotary_tables(
    positions: torch.Tensor, frequencies: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """`rotary_table` for each row of frequencies [K, d / 2] -> two [K, T, d]."""
    tables = [rotary_table(positions, row, dtype) for row in frequencies.unbind()]
    cos, sin = (torch.stack(halves) for halves in zip(*tables, strict=True))
    return cos, sin


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn each pair (x[i], x[i + d / 2]) by its angle. Shapes: x [T, H, d], cos and sin [T, d]."""
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (x * cos[:, None, :]).add_(turned.mul_(sin[:, None, :]))

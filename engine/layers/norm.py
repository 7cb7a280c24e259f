"""Root-mean-square normalisation."""

from __future__ import annotations

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension (arXiv:1910.07467).

    The mean is taken in float32, or in float64 if x is float64, and the result rounded to x's dtype
    before the weight, as the released models were trained. Shapes: x [..., D], weight [D].
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * scale).to(x.dtype).mul_(weight)

"""Where kernels run in this process, and how an error is measured."""

from __future__ import annotations

from typing import Final

import torch

from engine.kernels.availability import interpreted

DEVICE: Final = "cpu" if interpreted() else "cuda" if torch.cuda.is_available() else ""
"""Empty: nowhere."""
DTYPES: Final = (
    (torch.float32, torch.float16)
    if DEVICE == "cpu"  # the interpreter has no bfloat16 products
    else (torch.float32, torch.float16, torch.bfloat16)
)
EXAMPLES: Final = 4 if DEVICE == "cpu" else 60
"""Hypothesis' examples of a test: the interpreter takes a second for what a GPU does in none."""


def draw(*shape: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """N(0, 1) of a seed, the same numbers on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype).to(DEVICE)


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """||found - exact|| / ||exact||, in float64; 0 where both are nothing."""
    found, exact = found.double(), exact.double()
    return float((found - exact).norm() / exact.norm().clamp(min=1e-300))


def bound(dtype: torch.dtype) -> float:
    """8 units in the last place: one rounding of the result, and a float32 sum of up to a thousand
    terms, whose error grows like the root of their number (3.3 measured for 1,030 on an H200)."""
    return 8 * torch.finfo(dtype).eps

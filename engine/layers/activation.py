"""Activation functions, under the names that checkpoints give them.

In float32 and float64 they are composed from a vector-math function and exactly rounded steps.
PyTorch's fused ones compute whatever does not fill a vector register with another implementation,
so their last bit depends on where in a batch, and in which thread's share, a value lies. The steps
share one new tensor: on a CPU a fresh one costs more than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

_HALF = (torch.bfloat16, torch.float16)
"""dtypes for which the fused functions are kept: they round once, from float32."""


def silu(x: torch.Tensor) -> torch.Tensor:
    """x / (1 + exp(-x)) (arXiv:1606.08415, section 4), elementwise."""
    if x.dtype in _HALF:
        return F.silu(x)
    divisor = torch.neg(x).exp_().add_(1.0)
    return torch.div(x, divisor, out=divisor)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """x / 2 * (1 + erf(x / sqrt(2))) (arXiv:1606.08415, section 2), elementwise."""
    if x.dtype in _HALF:
        return F.gelu(x)
    return (x * math.sqrt(0.5)).erf_().add_(1.0).mul_(0.5).mul_(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """GELU's tanh approximation (arXiv:1606.08415, section 2), elementwise."""
    if x.dtype in _HALF:
        return F.gelu(x, approximate="tanh")
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return inner.tanh_().add_(1.0).mul_(0.5).mul_(x)


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": F.relu,
    "silu": silu,
}
"""`hidden_act` of a Hugging Face config -> elementwise function."""

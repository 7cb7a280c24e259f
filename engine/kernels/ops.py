"""Triton's kernels as operators that the compiler does not look into.

What is opaque runs the same kernel in eager and in compiled code, so the two give the same bits
where nothing else differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from engine.kernels.base import Kernels
from engine.kernels.matmul import matmul
from engine.kernels.rms_norm import rms_norm
from engine.kernels.rotary import rotate

_NAMESPACE: Final = "pooling_parity"


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return matmul(x, weight, bias)


def _fake_linear(x: torch.Tensor, weight: torch.Tensor, _bias: object) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[0])


def _fake_same(x: torch.Tensor, *_others: object) -> torch.Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _operator(name: str, function: Callable[..., torch.Tensor], fake: Callable[..., Any]) -> Any:
    full = f"{_NAMESPACE}::{name}"
    torch.library.define(full, torch.library.infer_schema(function, mutates_args=()))
    torch.library.impl(full, "CompositeExplicitAutograd", function)
    torch.library.register_fake(full, fake)
    return getattr(torch.ops.pooling_parity, name).default


_linear_op = _operator("linear", _linear, _fake_linear)
_rms_norm_op = _operator("rms_norm", rms_norm, _fake_same)
_rotate_op = _operator("rotate", rotate, _fake_same)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """See `engine.kernels.matmul`."""
    out: torch.Tensor = _linear_op(x, weight, bias)
    return out


TRITON: Final = Kernels(name="triton", linear=linear, rms_norm=_rms_norm_op, rotate=_rotate_op)

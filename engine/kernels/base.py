"""The operations of a layer that more than one backend can carry out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol

import torch
import torch.nn.functional as F

from engine.errors import ConfigurationError
from engine.layers.norm import rms_norm
from engine.layers.rotary import rotate


class Linear(Protocol):
    """x W^T + b: x [n, K], weight [N, K], bias [N] or None -> [n, N]."""

    def __call__(
        self, x: torch.Tensor, /, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor: ...


class RmsNorm(Protocol):
    """See `engine.layers.norm.rms_norm`."""

    def __call__(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor: ...


class Rotate(Protocol):
    """See `engine.layers.rotary.rotate`."""

    def __call__(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """One backend's operations."""

    name: str
    linear: Linear
    rms_norm: RmsNorm
    rotate: Rotate


def _linear(
    x: torch.Tensor, /, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    # Looked up when it is called, so that another processor's product can stand in for it.
    return F.linear(x, weight, bias)


TORCH: Final = Kernels(name="torch", linear=_linear, rms_norm=rms_norm, rotate=rotate)


def kernels_called(name: str) -> Kernels:
    """The kernels called `name`: torch or triton. Raises ConfigurationError for another name."""
    if name == "torch":
        return TORCH
    if name != "triton":
        raise ConfigurationError(f"kernels={name!r}: expected 'torch' or 'triton'")
    found: Kernels = import_module("engine.kernels.ops").TRITON
    return found

"""Weight and bias, for a product or a layer norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from engine.kernels import Kernels
from engine.weights import frozen

Read = Callable[[str], torch.Tensor]
"""From a tensor's name within a layer to the tensor."""


class Affine(nn.Module):
    """Several products that share their input are one: `names` are joined in that order."""

    def __init__(self, read: Read, *names: str, bias: bool = True) -> None:
        super().__init__()
        self.weight = frozen(torch.cat([read(f"{name}.weight") for name in names]))
        self.bias: nn.Parameter | None = None
        if bias:
            self.bias = frozen(torch.cat([read(f"{name}.bias") for name in names]))

    def product(self, x: torch.Tensor, kernels: Kernels) -> torch.Tensor:
        """x W^T + b: [T, K] -> [T, N]."""
        return kernels.linear(x, self.weight, self.bias)

    def norm(self, x: torch.Tensor, eps: float) -> torch.Tensor:
        """Layer norm over the last dimension (arXiv:1607.06450): [T, D] -> [T, D]."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps)

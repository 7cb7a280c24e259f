"""Layers between hidden states and a head's last product, as checkpoints describe them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import torch
import torch.nn.functional as F

from engine.layers.activation import ACTIVATIONS
from engine.layers.linear import MIN_ROWS, linear
from engine.pooling.weights import HeadWeights
from engine.weights import SINGLE_FILE

Layer = Callable[[torch.Tensor], torch.Tensor]
"""[n, inputs] -> [n, outputs]."""


def identity(x: torch.Tensor) -> torch.Tensor:
    """x itself."""
    return x


HEAD_ACTIVATIONS: Final[dict[str, Layer]] = {
    **ACTIVATIONS,
    "identity": identity,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
"""Elementwise functions by name; `hidden_act`s among them."""


class LayerSpec(Protocol):
    """One layer, free of weights."""

    @property
    def outputs(self) -> int:
        """Width of a row after this layer."""
        ...

    def build(self, weights: HeadWeights) -> Layer:
        """Raises CheckpointError for tensors that are missing or of another shape."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSpec:
    """activation(x W^T + b): W [outputs, inputs], b [outputs]; `bias` None: there is none."""

    weight: str
    bias: str | None
    inputs: int
    outputs: int
    activation: str = "identity"
    subfolder: str = ""
    file: str = SINGLE_FILE

    def build(self, weights: HeadWeights) -> Layer:
        where = {"subfolder": self.subfolder, "file": self.file}
        return Dense(
            weights.read(self.weight, (self.outputs, self.inputs), **where),
            None if self.bias is None else weights.read(self.bias, (self.outputs,), **where),
            activation=self.activation,
        )


class Dense:
    """Computed in the weight's dtype, on at least `MIN_ROWS` rows, so that a row's bits do not
    depend on how many there are."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, *, activation: str) -> None:
        self._weight, self._bias = weight, bias
        self._activation = HEAD_ACTIVATIONS[activation]

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        rows = rows.to(self._weight.dtype)
        return self._activation(linear(rows, self._weight, self._bias, min_rows=MIN_ROWS))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNormSpec:
    """Layer norm over a row (arXiv:1607.06450); `bias` None: there is none."""

    weight: str
    bias: str | None
    outputs: int
    eps: float

    def build(self, weights: HeadWeights) -> Layer:
        weight = weights.read(self.weight, (self.outputs,))
        bias = None if self.bias is None else weights.read(self.bias, (self.outputs,))
        shape, eps = (self.outputs,), self.eps
        return lambda rows: F.layer_norm(rows.to(weight.dtype), shape, weight, bias, eps)


def chained(specs: Sequence[LayerSpec], weights: HeadWeights) -> Layer:
    """The layers one after another; none: the rows as they are."""
    layers = [spec.build(weights) for spec in specs]

    def apply(rows: torch.Tensor) -> torch.Tensor:
        for layer in layers:
            rows = layer(rows)
        return rows

    return apply

"""BGE-M3's weight of each token (arXiv:2402.03216, section 3.2): relu(w . h + b)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.pooling.heads.layers import DenseSpec, Layer
from engine.pooling.weights import HeadWeights
from engine.request import PoolingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalSpec:
    """`output`: one value a token, relu its activation."""

    output: DenseSpec

    @property
    def width(self) -> int:
        return self.output.outputs

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset()

    def build(self, weights: HeadWeights) -> LexicalHead:
        return LexicalHead(self.output.build(weights))


class LexicalHead:
    """[n, D] -> [n, 1]; a row for every token, special ones included."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        del params  # relu is part of the definition: there is no activation to choose
        return self._layer(rows)

"""SPLADE: a weight for each word of the vocabulary, most of them zero."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.pooling.heads.layers import DenseSpec, Layer, LayerSpec, chained
from engine.pooling.weights import HeadWeights
from engine.request import PoolingParams

TOKENS_AT_ONCE = 256
"""Rows of logits held at a time: a vocabulary of 30,522 takes 31 MB for them in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpladeSpec:
    """SPLADE-max (arXiv:2109.10086): max over tokens of log(1 + relu(masked-LM logits)).

    `twice`: log1p once more, as OpenSearch's models (arXiv:2504.14839).
    """

    layers: tuple[LayerSpec, ...]
    output: DenseSpec
    twice: bool = False

    @property
    def width(self) -> int:
        return self.output.outputs

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset()

    def build(self, weights: HeadWeights) -> SpladeHead:
        return SpladeHead(chained((*self.layers, self.output), weights), twice=self.twice)


class SpladeHead:
    """Reads all rows of a prompt [n, D] and answers with one [1, V].

    The activation never falls, so the maximum is taken of the logits and only it is transformed.
    """

    def __init__(self, logits: Layer, *, twice: bool) -> None:
        self._logits, self._twice = logits, twice

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        del params  # it reads none, and the rules refuse them
        parts = [self._logits(part).amax(0) for part in torch.split(rows, TOKENS_AT_ONCE)]
        highest = torch.stack(parts).amax(0).relu().log1p().unsqueeze(0)
        return highest.log1p() if self._twice else highest

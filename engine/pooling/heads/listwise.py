"""A listwise reranker: several documents in one prompt, judged at their marker tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.pooling.heads.layers import Layer, LayerSpec, chained
from engine.pooling.weights import HeadWeights
from engine.request import PoolingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class ListwiseSpec:
    """`layers` project marker rows (jina-reranker-v3, arXiv:2509.25085); `is_cosine`: else dot."""

    layers: tuple[LayerSpec, ...]
    is_cosine: bool

    @property
    def width(self) -> int:
        return 1

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset()

    def build(self, weights: HeadWeights) -> ListwiseHead:
        return ListwiseHead(chained(self.layers, weights), is_cosine=self.is_cosine)


class ListwiseHead:
    """Rows [k + 1, D] at the markers, the query's the last, to scores [k, 1] of the documents.

    In float32 at least: similarities of half-precision rows tie.
    """

    def __init__(self, projection: Layer, *, is_cosine: bool) -> None:
        self._projection, self._is_cosine = projection, is_cosine

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        del params  # it reads none, and the rules refuse them
        rows = self._projection(rows)
        rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
        if self._is_cosine:
            rows = F.normalize(rows, p=2.0, dim=-1)
        # A sum of its own for each document, not a matrix product, whose order may depend on k.
        return (rows[:-1] * rows[-1:]).sum(-1, keepdim=True)

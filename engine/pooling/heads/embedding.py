"""Vectors: projected, cut to `dimensions`, normalised."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.pooling.heads.layers import Layer, LayerSpec, chained, identity
from engine.pooling.weights import HeadWeights
from engine.request import PoolingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpec:
    """`inputs`: width of a pooled row; `layers`: sentence-transformers Dense modules or a ColBERT
    projection, in order. `drops_first`: ColBERT of BGE-M3 leaves the CLS row out."""

    inputs: int
    normalize: bool
    layers: tuple[LayerSpec, ...] = ()
    drops_first: bool = False

    @property
    def width(self) -> int:
        return self.layers[-1].outputs if self.layers else self.inputs

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset({"normalize", "dimensions"})

    def build(self, weights: HeadWeights) -> EmbeddingHead:
        projection = chained(self.layers, weights) if self.layers else identity
        return EmbeddingHead(
            self.width,
            normalize=self.normalize,
            projection=projection,
            drops_first=self.drops_first,
        )


class EmbeddingHead:
    """Cast, project, keep the first `dimensions` values, then L2-normalise.

    With nothing to do it returns the tensor it was given: a head never copies by accident, and
    who owns the rows is decided by the pooling method.
    """

    def __init__(
        self,
        width: int,
        *,
        normalize: bool,
        dtype: torch.dtype | None = None,
        projection: Layer = identity,
        drops_first: bool = False,
    ) -> None:
        """`normalize`: the model's default. `dtype` of the output; None keeps the rows' own."""
        self.width = width
        self._normalize = normalize
        self._dtype = dtype
        self._projection = projection
        self._drops_first = drops_first

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        if self._dtype is not None:
            rows = rows.to(self._dtype)
        rows = self._projection(rows[1:] if self._drops_first else rows)
        if params.dimensions is not None and params.dimensions < rows.shape[-1]:
            rows = rows[..., : params.dimensions]
        normalize = self._normalize if params.normalize is None else params.normalize
        if not normalize:
            return rows
        wide = torch.promote_types(rows.dtype, torch.float32)  # a norm in half precision is rounded
        return F.normalize(rows.to(wide), p=2.0, dim=-1).to(rows.dtype)

"""What is computed from the rows that a pooling method picked.

A head is applied to one request at a time, so no request's answer depends on its neighbours:
[n, D] with n = 1 for sequence-level tasks and n = prompt length for token-level ones.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F

from engine.layers.linear import linear
from engine.request import PoolingParams


class Head(Protocol):
    """Arithmetic on pooled rows; the request's parameters have been checked for its task."""

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        """[n, D] -> [n, outputs]."""
        ...


class EmbeddingHead:
    """Cast, keep the first `dimensions` values, then L2-normalise.

    With nothing to do it returns the tensor it was given: a head never copies by accident, and
    who owns the rows is decided by the pooling method.
    """

    def __init__(
        self, hidden_size: int, *, normalize: bool, dtype: torch.dtype | None = None
    ) -> None:
        """`normalize`: the model's default. `dtype` of the output; None keeps the rows' own."""
        self.hidden_size = hidden_size
        self._normalize = normalize
        self._dtype = dtype

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        if self._dtype is not None:
            rows = rows.to(self._dtype)
        if params.dimensions is not None and params.dimensions < rows.shape[-1]:
            rows = rows[..., : params.dimensions]
        normalize = self._normalize if params.normalize is None else params.normalize
        if not normalize:
            return rows
        wide = torch.promote_types(rows.dtype, torch.float32)  # a norm in half precision is rounded
        return F.normalize(rows.to(wide), p=2.0, dim=-1).to(rows.dtype)


class ClassifierHead:
    """logits = rows W^T + b, then sigmoid for one class and softmax for several.

    Computed in the weight's dtype. The product is padded to at least `min_rows` rows, so that a
    row's bits do not depend on how many there are.
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, min_rows: int
    ) -> None:
        """`weight` [C, D]; `bias` [C] or None."""
        self._weight = weight
        self._bias = bias
        self._min_rows = min_rows

    @classmethod
    def yes_no(cls, yes: torch.Tensor, no: torch.Tensor, *, min_rows: int) -> ClassifierHead:
        """Reranker head from two rows [D] of the LM head: logit = (W[yes] - W[no]) . h.

        sigmoid of it is softmax([no, yes])[yes] (Qwen3-Reranker's score). The difference is
        taken in float32 (float64 for float64 rows): in half precision it would cancel.
        """
        wide = torch.promote_types(yes.dtype, torch.float32)
        return cls((yes.to(wide) - no.to(wide)).unsqueeze(0), min_rows=min_rows)

    @property
    def num_classes(self) -> int:
        return self._weight.shape[0]

    def __call__(self, rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
        rows = rows.to(self._weight.dtype)
        logits = linear(rows, self._weight, self._bias, min_rows=self._min_rows)
        if params.activation is False:
            return logits
        return torch.sigmoid(logits) if self.num_classes == 1 else torch.softmax(logits, dim=-1)

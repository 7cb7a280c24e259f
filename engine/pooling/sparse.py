"""Sparse views of dense answers: SPLADE's words, BGE-M3's tokens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """The entries of a vector [size] that are not zero, by rising index."""

    indices: tuple[int, ...]
    values: tuple[float, ...]
    size: int

    @classmethod
    def of(cls, values: torch.Tensor) -> SparseVector:
        """Of a dense vector [size] on the host."""
        (places,) = torch.nonzero(values, as_tuple=True)
        return cls(
            indices=tuple(places.tolist()),
            values=tuple(values[places].tolist()),
            size=values.numel(),
        )

    def dense(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """[size]; what `of` was given, if in its dtype."""
        found = torch.zeros(self.size, dtype=dtype)
        found[list(self.indices)] = torch.tensor(self.values, dtype=dtype)
        return found


def lexical_weights(
    token_ids: Sequence[int], weights: torch.Tensor, *, unused: Collection[int] = ()
) -> Mapping[int, float]:
    """BGE-M3's weight of each distinct token: the largest of its places, zeros left out.

    `weights` [n] or [n, 1], of the prompt's n tokens; `unused`: ids of special tokens.
    """
    found: dict[int, float] = {}
    for token, weight in zip(token_ids, weights.flatten().tolist(), strict=True):
        if weight > 0 and token not in unused:
            found[token] = max(weight, found.get(token, 0.0))
    return found

"""Numbers for generated checkpoints: the same bytes on every machine and every library version.

Each tensor has a Philox stream of its own, keyed by (seed, tensor name), so adding or reordering
tensors changes no other. Normal deviates are Irwin-Hall sums (twelve uniform 32-bit integers, mean
removed, variance exactly one, |x| <= 6): integer sums and one exact scaling, where Box-Muller or
`Generator.standard_normal` would depend on libm or on a numpy stream that carries no promise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

_TERMS = 12  # uniform variance is 1/12, so twelve of them make variance 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One tensor to draw: `mean + scale * N(0, 1)`, float32, of the given shape."""

    shape: tuple[int, ...]
    scale: float
    mean: float = 0.0


def draw(plan: Mapping[str, Draw], seed: int) -> dict[str, NDArray[np.float32]]:
    """Every tensor of `plan`, by name."""
    return {name: _tensor(name, spec, seed) for name, spec in plan.items()}


def _tensor(name: str, spec: Draw, seed: int) -> NDArray[np.float32]:
    deviates = normal(f"{seed}:{name}", prod(spec.shape)).reshape(spec.shape)
    return (spec.mean + spec.scale * deviates).astype(np.float32)


def normal(key: str, count: int) -> NDArray[np.float64]:
    """`count` deviates of mean 0 and variance 1 from the stream named `key`; [count] float64."""
    digest = hashlib.sha256(key.encode()).digest()[:16]  # Philox 4x64 takes a 128-bit key
    # random_raw is the bare Philox output, whose stream numpy promises; 64 bits hold two terms.
    pairs = count * _TERMS // 2
    words: NDArray[np.uint64] = np.random.Philox(key=int.from_bytes(digest, "little")).random_raw(
        pairs
    )
    terms = (words & np.uint64(0xFFFFFFFF)) + (words >> np.uint64(32))
    totals: NDArray[np.int64] = terms.reshape(count, _TERMS // 2).sum(axis=1).astype(np.int64)
    centred: NDArray[np.float64] = (totals - _TERMS // 2 * 0xFFFFFFFF).astype(np.float64)
    return centred / 2.0**32

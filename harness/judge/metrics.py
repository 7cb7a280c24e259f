"""How far two outputs are apart. Everything is computed in float64, whatever the dtype judged.

Shapes: vectors are [width], token outputs [rows, width]; both sides always have the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.judge.output import BITS, Float64, Output, OutputKind, Outputs


def _ratio(numerator: Float64, denominator: Float64) -> Float64:
    """Elementwise quotient; 0/0 is 0 (both sides are zero), x/0 is infinite, NaN stays NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = numerator / denominator
    return np.where((denominator == 0) & (numerator == 0), 0.0, quotient)


def relative_l2(value: Float64, reference: Float64, scale: Float64 | None = None) -> Float64:
    """Per row, the norm of the difference over the norm of `scale` (default: the reference)."""
    norm = np.linalg.norm(reference if scale is None else scale, axis=-1)
    return _ratio(np.linalg.norm(value - reference, axis=-1), norm)


def one_minus_cosine(value: Float64, reference: Float64) -> Float64:
    """Per row, 1 - cos as half the squared distance of the unit vectors.

    Subtracting a float32 dot product from 1 cannot resolve below 6e-8; this resolves 1e-30.
    A zero row has no direction: NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = value / np.linalg.norm(value, axis=-1, keepdims=True)
        other = reference / np.linalg.norm(reference, axis=-1, keepdims=True)
    half: Float64 = 0.5 * np.sum(np.square(unit - other), axis=-1)
    return half


def norm_ratio(value: Float64, reference: Float64) -> Float64:
    """Per row, |norm / norm of the reference - 1|: what cosine cannot see."""
    norms = np.linalg.norm(reference, axis=-1)
    return _ratio(np.abs(np.linalg.norm(value, axis=-1) - norms), norms)


def max_abs(value: Float64, reference: Float64) -> Float64:
    """Per row, the largest absolute difference."""
    largest: Float64 = np.max(np.abs(value - reference), axis=-1)
    return largest


def scaled_abs(value: Float64, reference: Float64, scale: Float64 | None = None) -> Float64:
    """Per row, the largest |difference| / max(1, |scale|) (default scale: the reference).

    A logit of 20 is computed to 20 roundings, one of 0.01 is a difference of larger numbers whose
    roundings stay; a score, at most 1, is held absolutely.
    """
    size = np.maximum(1.0, np.abs(reference if scale is None else scale))
    largest: Float64 = np.max(np.abs(value - reference) / size, axis=-1)
    return largest


def row_errors(
    kind: OutputKind, value: Output, reference: Output, scale: Output | None = None
) -> Float64:
    """The error that bounds are put on, for each row: relative L2 of vectors, else scaled.

    `scale` sets the denominator of relative errors, so that the three distances between two runs
    and the oracle share one unit and the triangle inequality holds.
    """
    measure = relative_l2 if kind.vector else scaled_abs
    x, y, size = (None if o is None else o.rows for o in (value, reference, scale))
    if kind is OutputKind.TOKEN_MATRIX:
        x, y, size = (None if rows is None else rows.reshape(1, -1) for rows in (x, y, size))
    assert x is not None, value
    assert y is not None, reference
    return measure(x, y, size)


def prefix_errors(value: Output, reference: Output, scale: Output) -> Float64:
    """For each n, the relative L2 error of the first n rows as one matrix."""
    apart = np.cumsum(np.square(value.rows - reference.rows).sum(axis=-1))
    return _ratio(np.sqrt(apart), np.sqrt(np.cumsum(np.square(scale.rows).sum(axis=-1))))


def error(kind: OutputKind, value: Output, reference: Output, scale: Output | None = None) -> float:
    """The worst row's error. One wrong row of 500 is not averaged away; NaN counts as infinite."""
    worst = float(np.max(row_errors(kind, value, reference, scale)))
    return worst if worst == worst else float("inf")


def num_non_finite(output: Output) -> int:
    """Elements that are NaN or infinite."""
    return int(output.size - np.count_nonzero(np.isfinite(output.float64)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BitDifference:
    """How the bits of two outputs differ.

    `histogram` counts differing elements by distance in ULP ("0" holds -0.0 against 0.0).
    """

    differing: int
    max_ulp: int
    histogram: dict[str, int]


def ulp_distance(a: Output, b: Output) -> npt.NDArray[np.uint64]:
    """Elementwise count of representable numbers between a and b; -0.0 and 0.0 are the same."""
    width = np.dtype(BITS[a.dtype]).itemsize * 8
    sign = np.uint64(1) << np.uint64(width - 1)
    x, y = a.bits.astype(np.uint64), b.bits.astype(np.uint64)
    same = (x & sign) == (y & sign)
    x, y = x & ~sign, y & ~sign
    distance: npt.NDArray[np.uint64] = np.where(same, np.maximum(x, y) - np.minimum(x, y), x + y)
    return distance


def bit_difference(a: Output, b: Output) -> BitDifference:
    """Compare bit patterns; the histogram's classes are 1, 2-3, 4-7, ... ULP."""
    unequal = a.bits != b.bits
    count = int(np.count_nonzero(unequal))
    if count == 0:
        return BitDifference(differing=0, max_ulp=0, histogram={})
    distance = ulp_distance(a, b)[unequal]
    histogram: dict[str, int] = {}
    for steps in np.sort(distance):
        low = 1 << (int(steps).bit_length() - 1) if steps else 0
        label = str(low) if low < 2 else f"{low}-{2 * low - 1}"
        histogram[label] = histogram.get(label, 0) + 1
    return BitDifference(differing=count, max_ulp=int(distance.max()), histogram=histogram)


def similarity_drift(a: Outputs, b: Outputs) -> float:
    """Largest change of a cosine similarity between two prompts: what a user of embeddings sees."""

    def similarities(outputs: Outputs) -> Float64:
        rows = np.stack([o.float64.reshape(-1) for o in outputs])
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
        cosines: Float64 = rows @ rows.T
        return cosines

    return float(np.max(np.abs(similarities(a) - similarities(b))))


def rank_inversions(a: Outputs, b: Outputs, near: float) -> int:
    """Pairs of prompts whose order by score flips although `a` has them more than 2 `near` apart.

    Closer scores are a tie: an error of `near` on each side can exchange them.
    """
    x = np.array([float(o.float64.reshape(-1)[0]) for o in a])
    y = np.array([float(o.float64.reshape(-1)[0]) for o in b])
    gap, other = x[:, None] - x[None, :], y[:, None] - y[None, :]
    return int(np.count_nonzero(np.triu((np.abs(gap) > 2 * near) & (gap * other <= 0), k=1)))

"""Checks of one side's outputs that hold under every tier: each returns what is wrong, or None."""

from __future__ import annotations

import itertools

import numpy as np

from harness.judge.bounds import Bounds
from harness.judge.metrics import error, num_non_finite
from harness.judge.output import Float64, Output, Outputs
from harness.judge.subject import Subject
from harness.judge.tolerance import NORM, POWER_FACTOR
from harness.record import Tier


def structure(subject: Subject, a: Outputs, b: Outputs) -> str | None:
    """Number of outputs, their shapes, rows per token, dtypes."""
    expected = len(subject.prompts)
    for side, outputs in (("A", a), ("B", b)):
        if len(outputs) != expected:
            return f"side {side} returned {len(outputs)} outputs for {expected} prompts"
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.dtype != y.dtype:
            return f"prompt {index}: dtype {x.dtype} on side A, {y.dtype} on side B"
        if subject.kind.token_level:
            for side, output in (("A", x), ("B", y)):
                rows = output.shape[0] if len(output.shape) == 2 else None
                if rows != subject.lengths[index]:
                    return (
                        f"prompt {index}: side {side} returned shape {output.shape} for "
                        f"{subject.lengths[index]} tokens, expected one row a token"
                    )
        if x.shape != y.shape:
            return f"prompt {index}: shape {x.shape} on side A, {y.shape} on side B"
        if x.size == 0:
            return f"prompt {index}: the output has no element (shape {x.shape})"
    return None


def finite(side: str, outputs: Outputs) -> str | None:
    """NaN and infinity are never an answer."""
    for index, output in enumerate(outputs):
        count = num_non_finite(output)
        if count:
            return (
                f"prompt {index}: {count} of {output.size} elements on side {side} are not finite"
            )
    return None


def norm(subject: Subject, side: str, outputs: Outputs, oracle: Outputs | None) -> str | None:
    """Rows that must be unit vectors are; and no row is zero, since it has no direction."""
    if not subject.kind.vector:
        return None
    for index, output in enumerate(outputs):
        norms = np.linalg.norm(output.rows, axis=-1)
        if not np.all(norms > 0):
            return f"prompt {index}: side {side} has a row of zeros"
        unit = subject.normalize
        if unit is None and oracle is not None:
            unit = bool(_off_unit(oracle[index]) <= NORM["float64"].floor)
        allowed = NORM[output.dtype].floor
        if unit and not _off_unit(output) <= allowed:
            return (
                f"prompt {index}: a normalised row on side {side} has norm off 1 by "
                f"{_off_unit(output):.3g}, allowed {allowed:.3g}"
            )
    return None


def _off_unit(output: Output) -> float:
    return float(np.max(np.abs(np.linalg.norm(output.rows, axis=-1) - 1.0)))


def distinct(
    subject: Subject, side: str, outputs: Outputs, oracle: Outputs | None, bounds: Bounds
) -> str | None:
    """Different prompts have different outputs, unless float64 cannot tell them apart either."""
    same: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
    for index, output in enumerate(outputs):
        same.setdefault((output.shape, output.bits.tobytes()), []).append(index)
    for group in same.values():
        for i, j in itertools.combinations(group, 2):
            if subject.prompts[i] == subject.prompts[j]:
                continue
            if oracle is not None and oracle[i].shape == oracle[j].shape:
                allowed = bounds.bound(Tier.KERNEL, subject.key(j)).oracle
                if error(subject.kind, oracle[i], oracle[j]) <= allowed:
                    continue
            what = "output" if subject.kind.vector else "score"
            return f"prompts {i} and {j} differ, but side {side} gives both the same {what}"
    return None


def exchanged(subject: Subject, a: Outputs, b: Outputs) -> str:
    """Names outputs (or rows of one output) that came back in each other's place; else empty.

    Only asked of a pair that failed already: it says why, it does not decide.
    """
    if len({x.shape for x in a}) == 1:
        whole = np.stack([x.float64.reshape(-1) for x in a])
        moved = _permuted(whole, np.stack([y.float64.reshape(-1) for y in b]))
        if moved:
            return "outputs come back in another order: " + _moves(moved, "prompt")
    if subject.kind.token_level:
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            moved = _permuted(x.rows, y.rows)
            if moved:
                return f"prompt {index}: rows come back in another order: " + _moves(moved, "row")
    return ""


def _moves(moved: dict[int, int], noun: str) -> str:
    shown = ", ".join(f"{noun} {i} holds {noun} {j}'s" for i, j in list(moved.items())[:3])
    return shown + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")


def _permuted(a: Float64, b: Float64) -> dict[int, int]:
    """Index in b -> index in a of the rows that changed places, if they did nothing else.

    A row counts as moved when another of a's is nearer by the factor that power asks of distinct
    inputs: rounding is that much smaller than the distance between two answers.
    """
    if len(a) < 2:
        return {}
    squares = (b * b).sum(1)[:, None] + (a * a).sum(1)[None, :] - 2 * b @ a.T
    nearest = squares.argmin(1)
    found: dict[int, int] = {}
    for index, place in enumerate(nearest.tolist()):
        there, here = np.linalg.norm(b[index] - a[place]), np.linalg.norm(b[index] - a[index])
        if place != index and there * POWER_FACTOR < here:
            found[index] = place
    return found if set(found) == set(found.values()) else {}

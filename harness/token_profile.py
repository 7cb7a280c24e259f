"""How far two runs are apart along their tokens, and layer by layer: what a report draws."""

from __future__ import annotations

from dataclasses import dataclass

from harness.axes import Plan
from harness.judge.metrics import one_minus_cosine
from harness.judge.output import Float64
from harness.systems.base import SystemRun
from harness.tapped_rows import Layers, distance

MAX_MAP_ENTRIES = 40_000
"""Layers times tokens of one prompt beyond which its map is left out of the record."""
DIGITS = 3

Rows = tuple[tuple[float, ...], ...]
"""Per prompt, one number a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenProfile:
    """Everything is empty for a prompt of which too little is known."""

    errors: Rows
    """Relative L2 of each token's row at the last place both runs have."""
    cosines: Rows
    """1 - cosine of the same rows, computed in float64; infinite where a row has no direction."""
    layers: tuple[Rows, ...]
    """Per prompt and layer (0 = embedding output), relative L2 of each token's row."""


def token_profile(
    a: SystemRun, b: SystemRun, left: Layers, right: Layers, *, of_outputs: bool
) -> TokenProfile:
    """Compare `b` with the reference `a`; `left` and `right` are their aligned rows.

    `of_outputs`: take the rows of token-level answers where there are any, as when every hidden
    state agrees and only the answers differ.
    """
    count = len(a.outputs)
    found = _output_rows(a, b) if of_outputs else ()
    pairs = found or tuple(_last_layer(left, right, prompt) for prompt in range(count))
    return TokenProfile(
        errors=tuple(tuple(distance(y, x) for x, y in rows) for rows in pairs),
        cosines=tuple(tuple(_rounded(_turned(y, x)) for x, y in rows) for rows in pairs),
        layers=tuple(_map(left, right, prompt) for prompt in range(count)),
    )


RowPairs = tuple[tuple[Float64, Float64], ...]


def _last_layer(left: Layers, right: Layers, prompt: int) -> RowPairs:
    layers = _shared(left, right, prompt)
    return _side_by_side(left, right, prompt, layers[-1]) if layers else ()


def _side_by_side(left: Layers, right: Layers, prompt: int, layer: int) -> RowPairs:
    x, y = left[prompt, layer], right[prompt, layer]
    return tuple((x[t].values, y[t].values) for t in sorted(x) if t in y)


def _shared(left: Layers, right: Layers, prompt: int) -> list[int]:
    return sorted(layer for p, layer in left if p == prompt and (p, layer) in right)


def _map(left: Layers, right: Layers, prompt: int) -> Rows:
    layers = _shared(left, right, prompt)
    rows = [_side_by_side(left, right, prompt, layer) for layer in layers]
    if sum(map(len, rows)) > MAX_MAP_ENTRIES:
        return ()
    return tuple(tuple(_rounded(distance(y, x)) for x, y in own) for own in rows)


def _turned(value: Float64, reference: Float64) -> float:
    found = float(one_minus_cosine(value, reference))
    return found if found == found else float("inf")


def _rounded(value: float) -> float:
    """Three digits are what a drawing can show; a record of thirty layers stays small."""
    return float(f"{value:.{DIGITS}g}")


def _output_rows(a: SystemRun, b: SystemRun) -> tuple[RowPairs, ...]:
    """The rows of token-level answers; nothing when an answer is one row of a longer prompt."""
    totals = [total_tokens(b.plan, prompt) for prompt in range(len(b.outputs))]
    if [len(x.rows) for x in a.outputs] != totals:
        return ()
    if any(x.shape != y.shape for x, y in zip(a.outputs, b.outputs, strict=True)):
        return ()
    return tuple(
        tuple(zip(x.rows, y.rows, strict=True)) for x, y in zip(a.outputs, b.outputs, strict=True)
    )


def total_tokens(plan: Plan, prompt: int) -> int:
    """Tokens of a prompt, as the plan of its run says."""
    totals = [int(e[3]) for step in plan for e in step if str(e[0]) == str(prompt)]
    return max(totals, default=0)

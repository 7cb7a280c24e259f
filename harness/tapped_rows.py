"""Hidden states of two runs brought side by side by absolute token position.

Which step, chunk or stage computed a row does not matter: rows of the same prompt, layer and token
stand beside each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.judge.metrics import relative_l2
from harness.judge.output import Float64
from harness.systems.base import TapRows


@dataclass(frozen=True, slots=True)
class Row:
    """One token's hidden state after one layer, and when it was computed."""

    values: Float64
    step: int
    chunk: int


Layers = Mapping[tuple[int, int], Mapping[int, Row]]
"""(prompt, layer) -> token -> row"""


def aligned(taps: Sequence[TapRows]) -> Layers:
    """Every row by (prompt, layer) and token; a token computed twice counts as computed last."""
    steps: dict[int, list[int]] = defaultdict(list)
    for tap in taps:
        if tap.step not in steps[tap.prompt]:
            steps[tap.prompt].append(tap.step)
    chunk = {
        prompt: {step: index for index, step in enumerate(sorted(found))}
        for prompt, found in steps.items()
    }
    rows: dict[tuple[int, int], dict[int, Row]] = defaultdict(dict)
    for tap in sorted(taps, key=lambda t: t.step):
        for offset, values in enumerate(tap.rows):
            rows[tap.prompt, tap.layer][tap.start + offset] = Row(
                np.asarray(values, dtype=np.float64), tap.step, chunk[tap.prompt][tap.step]
            )
    return rows


def distance(value: Float64, reference: Float64) -> float:
    """NaN counts as infinitely far; a bit that differs at no distance as the least number."""
    found = float(relative_l2(value, reference))
    if found == 0.0 and value.tobytes() != reference.tobytes():
        return float(np.nextafter(0.0, 1.0))
    return found if found == found else float("inf")

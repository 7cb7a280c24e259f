"""A scale of few steps for errors of any size: what a colour can show and a word can name."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = 9
"""Steps above 0; the class `h0` stands for no difference, `h9` for the largest."""


DECADES = 3
"""Drawn at least, whatever the values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Logarithmic between `low` and `high` (powers of ten); one step is a part of a decade."""

    low: float
    high: float
    top: float = math.inf
    """The largest finite value: what the last step is named by."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Heat:
        """The scale of these values, the same for every drawing of one prompt."""
        finite = [v for v in values if v > 0 and math.isfinite(v)]
        logs = [math.log10(v) for v in finite]
        # Below a hundred-millionth is rounding, whatever else there is.
        low = max(math.floor(min(logs, default=-8)), -9)
        high = max(math.ceil(max(logs, default=0)), low + 1)
        # Where all are alike, all are plain to see: the palest steps are for what is far smaller.
        low = min(low, high - DECADES)
        return cls(low=low, high=high, top=max(finite, default=math.inf))

    def step(self, value: float) -> int:
        """0 for no difference, 1 to STEPS else; what is not finite is the largest."""
        if value <= 0:
            return 0
        if not math.isfinite(value):
            return STEPS
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return min(max(math.ceil(share * STEPS), 1), STEPS)

    def edge(self, step: int) -> float:
        """The largest value of a step."""
        return min(float(10 ** (self.low + step * (self.high - self.low) / STEPS)), self.top)

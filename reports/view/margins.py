"""How near a measurement comes to its bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from harness.record import Measurement, PairRecord
from reports.view.text import quantity, share_of_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The measurement nearest to, or furthest over, its bound, in words."""

    metric: str
    severity: float
    text: str

    @property
    def heading(self) -> str:
        """What `text` says of the comparisons."""
        return "worst against its bound" if self.severity > 1 else "closest to its bound"


def severity(value: float, bound: float | None) -> float:
    """value / bound; infinite for NaN and for anything over a bound of 0; -1 without a bound."""
    if bound is None:
        return -1.0
    if math.isnan(value):
        return math.inf
    if bound <= 0:
        return 0.0 if value <= bound else math.inf
    return value / bound


COUNTED = {
    "rank_inversions": "rank changed",
    "ulp": "bits differ",
    "hazards": "unordered accesses",
}
"""What it means that a metric with a bound of 0 is over it."""


def told(measurement: Measurement) -> str:
    """`relative_l2 1.2e-6 (12 % of the bound 1e-5)`, `bits differ (ulp 2, 0 allowed)`."""
    value = quantity(measurement.value, measurement.unit)
    if measurement.bound is None:
        return f"{measurement.metric} {value}"
    bound = quantity(measurement.bound, measurement.unit)
    if measurement.bound <= 0:
        over = not measurement.value <= measurement.bound
        meaning = COUNTED.get(measurement.metric, "") if over else ""
        if meaning:
            return f"{meaning} ({measurement.metric} {value}, {bound} allowed)"
        return f"{measurement.metric} {value} ({bound} allowed)"
    share = share_of_bound(measurement.value, measurement.bound)
    return f"{measurement.metric} {value} ({share} {bound})"


def tightest(pairs: Iterable[PairRecord]) -> Margin | None:
    """The bounded measurement of `pairs` with the largest severity; None where none has a bound.

    One that allows nothing has no size: where it is over, the worst of a real bound stands beside.
    """
    bounded = [m for p in pairs for m in p.measurements if m.bound is not None]
    if not bounded:
        return None

    def order(m: Measurement) -> tuple[float, float, str]:
        # Among equals (0 ulp of 0 everywhere) the name decides: a report is reproducible.
        return severity(m.value, m.bound), m.value, m.metric

    top = max(bounded, key=order)
    text = told(top)
    sized = [m for m in bounded if m.bound and severity(m.value, m.bound) > 1]
    if sized and not top.bound:
        text += f"; {told(max(sized, key=order))}"
    return Margin(metric=top.metric, severity=severity(top.value, top.bound), text=text)

"""Geometry of a sparkline: one point a run, the bound as a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.view.text import number, share_of_bound

WIDTH, HEIGHT, MARGIN = 120, 40, 5
TOP = 1.25
"""Times the bound at the top, so that a failure is seen to be over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkShape:
    width: int
    height: int
    bound: float
    """y of the bound, which is a share of 1."""
    path: str
    points: tuple[tuple[float, float], ...]
    alternative: str


def draw_spark(shares: Sequence[float | None]) -> SparkShape:
    """A run in which the metric was not measured leaves a gap."""
    pitch = (WIDTH - 2 * MARGIN) / max(len(shares) - 1, 1)
    points: list[tuple[float, float]] = []
    path, gap = "", True
    for i, share in enumerate(shares):
        if share is None:
            gap = True
            continue
        point = (round(MARGIN + i * pitch, 1), _y(share))
        path += f"{'M' if gap else 'L'}{point[0]:g} {point[1]:g}"
        points.append(point)
        gap = False
    told = ", ".join("not measured" if s is None else number(s) for s in shares)
    last = next((s for s in reversed(shares) if s is not None), None)
    end = "" if last is None else f"; last {share_of_bound(last, 1.0)}"
    return SparkShape(
        width=WIDTH,
        height=HEIGHT,
        bound=_y(1.0),
        path=path or "M0 0",
        points=tuple(points),
        alternative=f"shares of the bound: {told}{end}",
    )


def _y(share: float) -> float:
    """A linear scale: half as near to the bound is half as high. Beyond TOP stands at the top."""
    place = min(max(share, 0.0), TOP) / TOP if not math.isnan(share) else 1.0
    return round(HEIGHT - MARGIN - place * (HEIGHT - 2 * MARGIN), 1)

"""Geometry of a noise strip: a histogram over a log scale, zeros in a column of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reports.view.noise import Strip

WIDTH, HEIGHT = 320, 64
BASE = 44
"""y of the axis."""
TALLEST = 36
ZERO_X, SCALE_X = 4, 50
"""Where the zero column and the log scale begin."""
RIGHT = WIDTH - 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    over: bool
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StripShape:
    width: int
    height: int
    base: int
    zero_x: int
    scale_x: int
    right: int
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    bounds: tuple[float, ...]
    """x of the bound lines; the bound 0 stands right of the zero column."""


def draw_strip(strip: Strip) -> StripShape:
    low, high = _decades(strip)

    def x(log: float) -> float:
        return round(SCALE_X + (log - low) / (high - low) * (RIGHT - SCALE_X), 1)

    highest = max([strip.zeros, *(n for _, n in strip.bins)], default=1)
    bars = []
    if strip.zeros:
        height = _height(strip.zeros, highest)
        bars.append(
            Bar(
                x=ZERO_X,
                y=BASE - height,
                width=16,
                height=height,
                over=False,
                title=f"{strip.zeros:,} values of exactly 0",
            )
        )
    last_bound = strip.bounds[-1]
    for log, n in strip.bins:
        height = _height(n, highest)
        left, right = x(log), x(log + strip.bin_width)
        bars.append(
            Bar(
                x=left,
                y=BASE - height,
                width=round(max(1.5, right - left - 0.6), 1),
                height=height,
                over=last_bound <= 0 or log > math.log10(last_bound) - strip.bin_width / 2,
                title=f"{n:,} values from {10**log:.1e} to {10 ** (log + strip.bin_width):.1e}",
            )
        )
    return StripShape(
        width=WIDTH,
        height=HEIGHT,
        base=BASE,
        zero_x=ZERO_X,
        scale_x=SCALE_X,
        right=RIGHT,
        bars=tuple(bars),
        ticks=tuple(Tick(x=x(decade), label=f"1e{decade}") for decade in _shown(low, high)),
        bounds=tuple(x(math.log10(b)) if b > 0 else 31.0 for b in strip.bounds),
    )


def _height(count: int, highest: int) -> float:
    """Logarithmic, so that one value among thousands is still seen."""
    return round(4 + (TALLEST - 4) * math.log1p(count) / math.log1p(highest), 1)


def _decades(strip: Strip) -> tuple[int, int]:
    ends = [log for log, _ in strip.bins] + [log + strip.bin_width for log, _ in strip.bins]
    ends += [math.log10(b) for b in strip.bounds if b > 0]
    if not ends:
        return -9, 0
    low, high = math.floor(min(ends)), math.ceil(max(ends) + 0.1)
    return (low, high) if high - low >= 2 else (low - 1, high)


def _shown(low: int, high: int) -> list[int]:
    step = max(1, math.ceil((high - low) / 5))
    return [d for d in range(low, high + 1) if (d - low) % step == 0]

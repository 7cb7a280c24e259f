"""Geometry of a histogram of classes that have a name each, such as distances in ulp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 720, 120
BASE, TALLEST = 84, 60
LEFT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedBar:
    x: float
    y: float
    width: float
    height: float
    middle: float
    label: str
    count: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarShape:
    width: int
    height: int
    base: int
    bars: tuple[NamedBar, ...]
    bound: float
    """x of the line that marks the tolerance: 0 ulp, left of everything."""
    alternative: str


def draw_bars(classes: Sequence[tuple[str, int]]) -> BarShape:
    """Bars grow with the logarithm of their count, so that one among thousands is seen."""
    shown = _joined(classes)
    pitch = min(86.0, (WIDTH - LEFT - 8) / max(len(shown), 1))
    highest = max((n for _, n in shown), default=1)
    bars = []
    for i, (label, count) in enumerate(shown):
        height = round(6 + (TALLEST - 6) * math.log1p(count) / math.log1p(highest), 1)
        x = round(LEFT + i * pitch + 6, 1)
        bars.append(
            NamedBar(
                x=x,
                y=BASE - height,
                width=round(pitch - 10, 1),
                height=height,
                middle=round(x + (pitch - 10) / 2, 1),
                label=label,
                count=f"{count:,}",
            )
        )
    told = "; ".join(f"{count:,} off by {label} ulp" for label, count in shown)
    return BarShape(
        width=WIDTH, height=HEIGHT, base=BASE, bars=tuple(bars), bound=LEFT - 4, alternative=told
    )


MAX_BARS = 12


def _joined(classes: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """At most MAX_BARS: neighbours are joined, `4-7` and `8-15` into `4-15`."""
    shown = list(classes)
    while len(shown) > MAX_BARS:
        shown = [_join(shown[i : i + 2]) for i in range(0, len(shown), 2)]
    return [(_short(label), count) for label, count in shown]


def _join(pair: Sequence[tuple[str, int]]) -> tuple[str, int]:
    low, high = pair[0][0].split("-")[0], pair[-1][0].split("-")[-1]
    return (low if low == high else f"{low}-{high}"), sum(n for _, n in pair)


def _short(label: str) -> str:
    """`1048576-2097151` does not fit under a bar; its powers of two do."""
    low, _, high = label.partition("-")
    if len(label) <= 9 or not low.isdigit() or not high.isdigit():
        return label
    return f"2^{int(low).bit_length() - 1}-2^{int(high).bit_length()}"

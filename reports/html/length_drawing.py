"""Geometry of a small histogram of prompt lengths: one bar for each doubling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PITCH, HEIGHT, GAP = 14, 26, 2
LEAST = 2
"""Pixels of the smallest bar: one prompt must be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBar:
    x: int
    y: float
    width: int
    height: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthShape:
    width: int
    height: int
    bars: tuple[LengthBar, ...]
    alternative: str


def draw_lengths(bins: Sequence[tuple[str, int]]) -> LengthShape:
    """`bins`: (lengths in words, prompts), shortest first; a bin without prompts has no bar."""
    top = max((count for _, count in bins), default=1)
    bars = []
    for i, (label, count) in enumerate(bins):
        if not count:
            continue
        height = max(LEAST, round((HEIGHT - 1) * count / top, 1))
        bars.append(
            LengthBar(
                x=i * PITCH + 1,
                y=round(HEIGHT - height, 1),
                width=PITCH - GAP,
                height=height,
                title=f"{label}: {count:,}",
            )
        )
    return LengthShape(
        width=max(1, len(bins)) * PITCH,
        height=HEIGHT,
        bars=tuple(bars),
        alternative="prompts by tokens: " + ", ".join(bar.title for bar in bars),
    )

"""Geometry of the error along a prompt: one column per token (or few tokens), log scale upwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.view.text import plural

WIDTH, HEIGHT = 720, 158
LEFT, RIGHT = 52, WIDTH - 8
TOP, BASE = 26, 126
MAX_COLUMNS = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The largest error among tokens `first`..`last` (inclusive)."""

    x: float
    y: float
    width: float
    height: float
    css: str
    """`bar`, `zero` (no difference at all) or `broken` (not finite)."""
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    position: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenShape:
    width: int
    height: int
    left: int
    right: int
    top: int
    base: int
    columns: tuple[Column, ...]
    levels: tuple[Line, ...]
    edges: tuple[Line, ...]
    first: Line | None
    tokens_per_column: int
    last_token: int
    alternative: str


def draw_tokens(
    errors: Sequence[float], edges: Sequence[int], diverges_at: int | None
) -> TokenShape | None:
    """None for an empty prompt. `edges` are token positions at which a chunk begins."""
    count = len(errors)
    if not count:
        return None
    per_column = math.ceil(count / MAX_COLUMNS)
    low, high = _decades(errors)
    pitch = (RIGHT - LEFT) / count

    def x(token: float) -> float:
        return round(LEFT + token * pitch, 1)

    columns = []
    for first in range(0, count, per_column):
        last = min(first + per_column, count) - 1
        error = largest(errors[first : last + 1])
        height, css = _height(error, low, high)
        columns.append(
            Column(
                x=x(first),
                y=BASE - height,
                width=round(max(0.8, (last + 1 - first) * pitch * 0.86), 2),
                height=height,
                css=css,
                title=_title(first, last, error),
            )
        )
    inner = [e for e in edges if 0 < e < count]
    step = max(1, math.ceil((high - low) / 4))
    return TokenShape(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=RIGHT,
        top=TOP,
        base=BASE,
        columns=tuple(columns),
        levels=tuple(
            Line(position=_level(d, low, high), label=f"1e{d}") for d in range(low, high + 1, step)
        ),
        edges=tuple(Line(position=x(e), label=f"{e:,}") for e in inner),
        first=(
            Line(position=x(diverges_at + 0.5), label=f"{diverges_at:,}")
            if diverges_at is not None and 0 <= diverges_at < count
            else None
        ),
        tokens_per_column=per_column,
        last_token=count - 1,
        alternative=_alternative(errors, inner, diverges_at),
    )


def largest(errors: Sequence[float]) -> float:
    """The largest error; what is no number counts as infinite."""
    return max(errors, key=lambda e: math.inf if math.isnan(e) else e)


def _decades(errors: Sequence[float]) -> tuple[int, int]:
    logs = [math.log10(e) for e in errors if e > 0 and math.isfinite(e)]
    if not logs:
        return -8, 0
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return (low, high) if high > low else (low - 1, high)


def _level(log: float, low: int, high: int) -> float:
    return round(BASE - 6 - (log - low) / (high - low) * (BASE - 6 - TOP), 1)


def _height(error: float, low: int, high: int) -> tuple[float, str]:
    if not math.isfinite(error):
        return BASE - TOP, "broken"
    if error <= 0:
        return 2.0, "zero"
    return round(BASE - _level(math.log10(error), low, high), 1), "bar"


def _title(first: int, last: int, error: float) -> str:
    where = f"token {first:,}" if first == last else f"tokens {first:,} to {last:,}"
    return f"{where}: {error:.2e}" if math.isfinite(error) else f"{where}: not finite"


def _alternative(errors: Sequence[float], edges: Sequence[int], first: int | None) -> str:
    """What the drawing shows, for those who cannot see it."""
    differing = [i for i, e in enumerate(errors) if not e <= 0]
    parts = [f"{plural(len(errors), 'token')}, {len(differing):,} different"]
    worst = max(
        differing, key=lambda i: math.inf if math.isnan(errors[i]) else errors[i], default=0
    )
    if first is not None and differing and differing[0] < first:
        # Rounding before it: a count of all that differ would say nothing.
        parts = [f"{plural(len(errors), 'token')}; the two runs part at token {first:,}"]
        parts.append(f"the largest at {worst:,}")
        first = None
    elif differing:
        parts.append(f"the first at {differing[0]:,}, the largest at {worst:,}")
    if first is not None:
        parts.append(f"first divergence at token {first:,}")
    if edges:
        shown = ", ".join(f"{e:,}" for e in edges[:20])
        more = f" and {len(edges) - 20} more" if len(edges) > 20 else ""
        parts.append(f"chunks begin at 0, {shown}{more}")
    return "; ".join(parts) + "."

"""Geometry of a divergence map: a row a layer, a column a token (or few), a colour an error."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.html.heat import STEPS, Heat
from reports.html.token_drawing import LEFT, RIGHT, WIDTH, Line, largest
from reports.view.text import number

TOP = 30
"""Room for the name of the axis, and below it the mark of the first difference."""
MAX_ROWS = 36
TALL, MAP_HEIGHT = 22, 300
"""Of a row at most, and of all rows together about."""
MAX_COLUMNS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class MapShape:
    """`paths` holds one SVG path a step of the heat scale: thousands of squares, few elements."""

    width: int
    height: int
    left: int
    right: int
    top: int
    base: int
    paths: tuple[tuple[int, str], ...]
    """(step, path)"""
    rows: tuple[Line, ...]
    edges: tuple[Line, ...]
    first: Line | None
    tokens_per_column: int
    layers_per_row: int
    num_tokens: int
    num_layers: int
    levels: tuple[str, ...]
    """Per row from the bottom, a digit a column: the step. For whoever points at it."""
    scale: tuple[str, ...]
    """Text of each step's largest value, from 1."""
    alternative: str


def draw_map(
    layers: Sequence[Sequence[float]], edges: Sequence[int], diverges_at: int | None
) -> MapShape | None:
    """None where nothing was recorded. Layer 0 (the embedding output) is the lowest row."""
    count = min((len(layer) for layer in layers), default=0)
    if not count:
        return None
    per_column, per_row = math.ceil(count / MAX_COLUMNS), math.ceil(len(layers) / MAX_ROWS)
    heat = Heat.of(itertools.chain.from_iterable(layers))
    levels = [
        [
            heat.step(largest([e for layer in band for e in layer[t : t + per_column]]))
            for t in range(0, count, per_column)
        ]
        for band in (layers[i : i + per_row] for i in range(0, len(layers), per_row))
    ]
    row = min(TALL, MAP_HEIGHT // len(levels))
    base = TOP + row * len(levels)
    pitch = (RIGHT - LEFT) / count
    step = max(1, math.ceil(len(levels) / 8))
    return MapShape(
        width=WIDTH,
        height=base + 34,
        left=LEFT,
        right=RIGHT,
        top=TOP,
        base=base,
        paths=tuple(_paths(levels, pitch * per_column, base, row)),
        rows=tuple(
            Line(position=base - row * i - row // 2 + 4, label=f"{i * per_row}")
            for i in range(0, len(levels), step)
        ),
        edges=tuple(
            Line(position=round(LEFT + e * pitch, 1), label=f"{e:,}")
            for e in edges
            if 0 < e < count
        ),
        first=(
            Line(position=round(LEFT + (diverges_at + 0.5) * pitch, 1), label=f"{diverges_at:,}")
            if diverges_at is not None and 0 <= diverges_at < count
            else None
        ),
        tokens_per_column=per_column,
        layers_per_row=per_row,
        num_tokens=count,
        num_layers=len(layers),
        levels=tuple("".join(map(str, row)) for row in levels),
        scale=tuple(_named(heat, i) for i in range(1, STEPS + 1)),
        alternative=_alternative(layers, count, diverges_at),
    )


def _named(heat: Heat, step: int) -> str:
    """A step's largest value: round between decades, exact where it is the largest of all."""
    edge = heat.edge(step)
    return number(edge if edge == heat.top else float(f"{edge:.1g}"))


def _paths(
    levels: Sequence[Sequence[int]], pitch: float, base: int, height: int
) -> list[tuple[int, str]]:
    """Neighbours of one step become one rectangle."""
    parts: dict[int, list[str]] = {}
    for row, steps in enumerate(levels):
        y, first = base - height * (row + 1), 0
        for step, run in itertools.groupby(steps):
            width = len(list(run))
            # The last column may hold fewer tokens than the others: it ends with the drawing.
            x = round(LEFT + first * pitch, 1)
            end = min(round(LEFT + (first + width) * pitch, 1), RIGHT)
            parts.setdefault(step, []).append(f"M{x:g} {y}H{end:g}V{y + height - 1}H{x:g}z")
            first += width
    return [(step, "".join(path)) for step, path in sorted(parts.items())]


def _alternative(layers: Sequence[Sequence[float]], count: int, first: int | None) -> str:
    differing = [i for i, layer in enumerate(layers) if any(not e <= 0 for e in layer)]
    if not differing:
        return f"{len(layers)} layers by {count:,} tokens: no row differs."
    tokens = [t for t in range(count) if any(not layer[t] <= 0 for layer in layers)]
    if first is not None and tokens[0] < first:
        return (
            f"{len(layers)} layers by {count:,} tokens. Token {first:,} is where the two runs "
            f"part; tokens {tokens[0]:,} to {tokens[-1]:,} are not equal to the last bit."
        )
    told = (
        f"{len(layers)} layers by {count:,} tokens. Rows differ from layer {differing[0]} to "
        f"{differing[-1]}, from token {tokens[0]:,} to {tokens[-1]:,}"
    )
    return told + (f"; first divergence at token {first:,}." if first is not None else ".")

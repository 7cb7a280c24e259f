"""Geometry of a lattice map, in SVG user units. Templates turn it into marks; no markup here."""

from __future__ import annotations

from dataclasses import dataclass

from reports.view.lattice import CellView, EdgeView, Lattice

CELL_WIDTH, CELL_HEIGHT = 92, 62
GAP = 34
TOP = 62
MARGIN = 8
MAX_LABEL = 13
CHARACTER_WIDTH = 10
"""Of the widest label size that the style sheet uses, on phones."""
ASIDE = 20
"""Between the row labels and the cells: room for the lines that run round the back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShape:
    x: int
    y: int
    cell: CellView


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeShape:
    """`path` is an SVG path; (x, y) is its middle, where its mark stands."""

    path: str
    x: int
    y: int
    edge: EdgeView


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    x: int
    y: int
    lines: tuple[str, ...]
    full: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeShape:
    width: int
    height: int
    cells: tuple[CellShape, ...]
    edges: tuple[EdgeShape, ...]
    columns: tuple[Label, ...]
    rows: tuple[Label, ...]


def draw_lattice(lattice: Lattice) -> LatticeShape:
    columns, rows = len(lattice.column_labels), len(lattice.row_labels)
    lines = [_lines(lattice.row_axes, values) for values in lattice.row_labels]
    longest = max((len(line) for label in lines for line in label), default=0)
    left = ASIDE + CHARACTER_WIDTH * longest
    return LatticeShape(
        width=left + columns * CELL_WIDTH + (columns - 1) * GAP + MARGIN,
        height=TOP + rows * CELL_HEIGHT + (rows - 1) * GAP + MARGIN,
        cells=tuple(CellShape(x=_x(left, c.column), y=_y(c.row), cell=c) for c in lattice.cells),
        edges=tuple(_edge(left, e) for e in lattice.edges),
        columns=tuple(
            _label(lattice.column_axes, values, _x(left, i) + CELL_WIDTH // 2, 18)
            for i, values in enumerate(lattice.column_labels)
        ),
        rows=tuple(
            _label(lattice.row_axes, values, left - ASIDE, _y(i) + 26)
            for i, values in enumerate(lattice.row_labels)
        ),
    )


def _x(left: int, column: int) -> int:
    return left + column * (CELL_WIDTH + GAP)


def _y(row: int) -> int:
    return TOP + row * (CELL_HEIGHT + GAP)


def _lines(axes: tuple[str, ...], values: tuple[str, ...]) -> tuple[str, ...]:
    # A bare number says nothing without its axis; a word such as `eager` does.
    named = [f"{a}={v}" if v.isdigit() else v for a, v in zip(axes, values, strict=True)]
    return tuple(n if len(n) <= MAX_LABEL else n[: MAX_LABEL - 1] + "…" for n in named)


def _label(axes: tuple[str, ...], values: tuple[str, ...], x: int, y: int) -> Label:
    full = ", ".join(f"{axis}={value}" for axis, value in zip(axes, values, strict=True))
    return Label(x=x, y=y, lines=_lines(axes, values), full=full)


def _edge(left: int, edge: EdgeView) -> EdgeShape:
    (row_a, column_a), (row_b, column_b) = edge.a, edge.b
    if row_a == row_b:
        y = _y(row_a) + CELL_HEIGHT // 2
        if column_b - column_a == 1:
            start, end = _x(left, column_a) + CELL_WIDTH, _x(left, column_b)
            return EdgeShape(path=f"M{start} {y}H{end}", x=(start + end) // 2, y=y, edge=edge)
        # Round the back: out at the top, along the gutter above the row, in at the top.
        top, above = _y(row_a), _y(row_a) - 12
        start, end = _x(left, column_a) + CELL_WIDTH - 18, _x(left, column_b) + 18
        path = f"M{start} {top}V{above + 6}Q{start} {above} {start + 6} {above}"
        path += f"H{end - 6}Q{end} {above} {end} {above + 6}V{top}"
        return EdgeShape(path=path, x=(start + end) // 2, y=above, edge=edge)
    if column_a == column_b:
        x = _x(left, column_a) + CELL_WIDTH // 2
        if row_b - row_a == 1:
            start, end = _y(row_a) + CELL_HEIGHT, _y(row_b)
            return EdgeShape(path=f"M{x} {start}V{end}", x=x, y=(start + end) // 2, edge=edge)
        side, aside = _x(left, column_a), _x(left, column_a) - 12
        start, end = _y(row_a) + CELL_HEIGHT - 14, _y(row_b) + 14
        path = f"M{side} {start}H{aside + 6}Q{aside} {start} {aside} {start + 6}"
        path += f"V{end - 6}Q{aside} {end} {aside + 6} {end}H{side}"
        return EdgeShape(path=path, x=aside, y=(start + end) // 2, edge=edge)
    # Folded axes can put more than one step between two cells: a straight line says so.
    ax, ay = _x(left, column_a) + CELL_WIDTH // 2, _y(row_a) + CELL_HEIGHT // 2
    bx, by = _x(left, column_b) + CELL_WIDTH // 2, _y(row_b) + CELL_HEIGHT // 2
    return EdgeShape(path=f"M{ax} {ay}L{bx} {by}", x=(ax + bx) // 2, y=(ay + by) // 2, edge=edge)

"""Figures a test measured, as a table on its standard output (`pytest -s`, or `-rP`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

Cell = str | int | float


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print one table; floats with three significant digits."""
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=110).print(table)

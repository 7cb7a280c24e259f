"""Sets of axis values: which of them fail, which are minimal, and what hides a failure."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping

from harness.axes import ALL_AXES, Cell, baseline

Switches = frozenset[str]
"""The `axis=value`s in which a cell differs from the baseline."""


def switches(cell: Mapping[str, str]) -> Switches:
    """`axis=value` of every axis that is not at its baseline; what is no axis always counts."""
    return frozenset(
        f"{name}={value}"
        for name, value in cell.items()
        if name not in ALL_AXES or value != ALL_AXES[name].baseline
    )


def cell_of(values: Iterable[str]) -> Cell:
    """Inverse of `switches`: the baseline with these values."""
    return Cell.of({**baseline(), **dict(value.split("=", 1) for value in values)})


def minimal_sets(bad: Iterable[Mapping[str, str]]) -> tuple[Switches, ...]:
    """The sets of the bad cells of which no proper subset is bad; smallest first."""
    found = {switches(cell) for cell in bad}
    least = [s for s in found if not any(other < s for other in found)]
    return tuple(sorted(least, key=lambda s: (len(s), sorted(s))))


def masks(bad: Collection[Cell], good: Collection[Cell]) -> frozenset[str]:
    """The `axis=value`s that turn some bad cell good when they alone are added to it."""
    failing = {switches(cell) for cell in bad}
    found = set()
    for cell in good:
        values = switches(cell)
        found |= {value for value in values if values - {value} in failing}
    return frozenset(found)


def closure(sets: Iterable[Switches]) -> tuple[Cell, ...]:
    """The cells of the sets and of all their subsets, smaller ones first: what proves minimality.

    The baseline is always among them.
    """
    wanted = {frozenset[str]()}
    for values in sets:
        for size in range(1, len(values) + 1):
            wanted |= {frozenset(part) for part in itertools.combinations(values, size)}
    return nearest_first(cell_of(values) for values in wanted)


def one_larger(sets: Iterable[Switches], cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Those of `cells` that add exactly one value to one of the sets."""
    wanted = set(sets)
    return tuple(
        cell
        for cell in cells
        if any(s < switches(cell) and len(switches(cell)) == len(s) + 1 for s in wanted)
    )


def nearest_first(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """By number of values that are not the baseline's, then in the lattice's own order."""

    def place(cell: Cell) -> tuple[int, tuple[int, ...]]:
        return len(switches(cell)), tuple(
            ALL_AXES[name].values.index(value) for name, value in cell.items() if name in ALL_AXES
        )

    return tuple(sorted(cells, key=place))


def told(values: Switches) -> str:
    """`chunk=chunked AND compile=compiled`"""
    return " AND ".join(sorted(values))


def told_all(sets: Iterable[Switches]) -> str:
    """`async=async, or pp=2`"""
    return ", or ".join(told(values) for values in sets)

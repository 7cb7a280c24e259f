"""Cells of the lattice: names, order and distance. A cell maps each axis to one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness.record import AxisInfo

Cell = tuple[str, ...]
"""The values of a cell in the order of the lattice's axes."""


def differing(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[str, ...]:
    """Axes on which two cells differ, in the order of `a`."""
    return tuple(axis for axis in a if a[axis] != b.get(axis))


def in_words(cell: Mapping[str, str]) -> str:
    return ", ".join(f"{axis}={value}" for axis, value in cell.items())


def values_seen(
    axes: Sequence[AxisInfo], cells: Iterable[Mapping[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Axis -> its values, baseline first: those declared, then any that only the cells name."""
    seen: dict[str, dict[str, None]] = {}
    for cell in cells:
        for axis, value in cell.items():
            seen.setdefault(axis, {})[value] = None
    declared = {a.name: (a.baseline, *(v for v in a.values if v != a.baseline)) for a in axes}
    order = [name for name in declared if name in seen] + [n for n in seen if n not in declared]
    return {name: tuple(dict.fromkeys((*declared.get(name, ()), *seen[name]))) for name in order}


def gray(radices: Sequence[int]) -> list[tuple[int, ...]]:
    """Reflected mixed-radix Gray code: neighbours differ in one digit."""
    codes: list[tuple[int, ...]] = [()]
    for radix in reversed(radices):
        codes = [
            (digit, *code)
            for digit in range(radix)
            for code in (codes if digit % 2 == 0 else reversed(codes))
        ]
    return codes

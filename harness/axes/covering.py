"""Few cells that cover many axes: t-way covering arrays, and what is one step from production.

A lattice over ten axes has thousands of cells. Most defects need two or three switches at once
(Kuhn, Kacker and Lei, NIST SP 800-142), so it is enough that every combination of any t values
occurs in some cell. The number of combinations covered is counted from the cells that ran.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.axes.base import Axis, AxisError
from harness.axes.lattice import Cell
from harness.axes.startable import Startable, at_rest, combinations


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Combinations of `strength` values of different axes: how many there are, how many ran."""

    strength: int
    axes: tuple[str, ...]
    cells: int
    covered: int
    possible: int
    """Those that some cell which the system starts in has."""
    refused: int = 0
    """Those that no such cell has."""

    def __str__(self) -> str:
        told = (
            f"{self.strength}-way coverage of {len(self.axes)} axes by {self.cells} cells: "
            f"{self.covered} of {self.possible} combinations of values"
        )
        return f"{told}; {self.refused} more are refused at start-up" if self.refused else told


def _number(axes: Sequence[Axis], strength: int) -> int:
    """Of all combinations of so many values, refused ones among them."""
    total = 0
    for group in itertools.combinations(axes, strength):
        size = 1
        for axis in group:
            size *= len(axis.values)
        total += size
    return total


def covering(
    axes: Sequence[Axis], strength: int, startable: Startable | None = None
) -> tuple[Cell, ...]:
    """Cells in which every combination of `strength` values occurs; the baseline comes first.

    `startable`: only such cells, and every combination that they have.

    Raises AxisError when the strength is not between 1 and the number of axes.
    """
    if not 1 <= strength <= len(axes):
        raise AxisError(
            f"strength={strength} is not possible over {len(axes)} axes "
            f"({', '.join(axis.name for axis in axes)}); choose 1 to {len(axes)}"
        )
    start = at_rest(axes)
    if strength == len(axes) == 1:
        rows: Iterable[Mapping[str, str]] = ({axes[0].name: v} for v in axes[0].values)
    else:
        # Needed for this alone: a machine that only judges or explains may lack it.
        from covertable import make  # noqa: PLC0415

        constraints = [] if startable is None else _constraints(startable)
        factors = {axis.name: list(axis.values) for axis in axes}
        rows = make(factors, strength=strength, constraints=constraints)
    found: Iterable[Cell] = [Cell.of({**start, **row}) for row in rows]
    if startable is not None:
        found = startable.complete((start, *found), strength)
    return tuple(dict.fromkeys((start, *found)))


def _constraints(startable: Startable) -> list[dict[str, object]]:
    """Every value, and every pair of values, that no startable cell has, as covertable has it."""
    return [
        {
            "operator": "not",
            "condition": {
                "operator": "and",
                "conditions": [{"operator": "eq", "left": n, "value": v} for n, v in values],
            },
        }
        for values in startable.refused
    ]


def coverage(
    cells: Iterable[Mapping[str, str]],
    axes: Sequence[Axis],
    strength: int,
    startable: Startable | None = None,
) -> Coverage:
    """What these cells cover of all combinations of `strength` values."""
    ran, total = list(cells), _number(axes, strength)
    covered = {c for cell in ran for c in combinations(cell, axes, strength)}
    possible = total if startable is None else len(startable.combinations(strength))
    return Coverage(
        strength=strength,
        axes=tuple(axis.name for axis in axes),
        cells=len(ran),
        covered=len(covered),
        possible=possible,
        refused=total - possible,
    )


def leave_one_off(production: Mapping[str, str], axes: Sequence[Axis]) -> tuple[Cell, ...]:
    """The baseline, the production configuration, and that with one axis at a time at rest.

    Raises AxisError when production is the baseline: there is nothing to leave off.
    """
    start = at_rest(axes)
    there = Cell.of({**start, **production})
    away = [axis for axis in axes if axis.value(there) != axis.baseline]
    if not away:
        raise AxisError(f"production={there} is the baseline; name the values that you run with")
    return tuple(
        dict.fromkeys((start, there, *(there.with_value(a.name, a.baseline) for a in away)))
    )

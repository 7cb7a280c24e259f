"""Few cells that cover many axes: t-way covering arrays, and what is one step from production.

A lattice over eight axes has hundreds of cells. Most defects need two or three switches at once
(Kuhn, Kacker and Lei, NIST SP 800-142), so it is enough that every combination of any t values
occurs in some cell. The number of combinations covered is counted from the cells that ran.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.axes.base import Axis, AxisError
from harness.axes.lattice import AXES, Cell, baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Combinations of `strength` values of different axes: how many there are, how many ran."""

    strength: int
    axes: tuple[str, ...]
    cells: int
    covered: int
    possible: int

    def __str__(self) -> str:
        return (
            f"{self.strength}-way coverage of {len(self.axes)} axes by {self.cells} cells: "
            f"{self.covered} of {self.possible} combinations of values"
        )


def _fixed(axes: Sequence[Axis]) -> dict[str, str]:
    """The primary axes that are not varied, at their baseline: cells stay complete."""
    varied = {axis.name for axis in axes}
    return {name: axis.baseline for name, axis in AXES.items() if name not in varied}


def covering(axes: Sequence[Axis], strength: int) -> tuple[Cell, ...]:
    """Cells in which every combination of `strength` values occurs; the baseline comes first.

    Raises AxisError when the strength is not between 1 and the number of axes.
    """
    if not 1 <= strength <= len(axes):
        raise AxisError(
            f"strength={strength} is not possible over {len(axes)} axes "
            f"({', '.join(axis.name for axis in axes)}); choose 1 to {len(axes)}"
        )
    start = Cell.of({**_fixed(axes), **baseline(axes)})
    if strength == len(axes) == 1:
        rows: Iterable[Mapping[str, str]] = ({axes[0].name: v} for v in axes[0].values)
    else:
        # Needed for this alone: a machine that only judges or explains may lack it.
        from covertable import make  # noqa: PLC0415

        rows = make({axis.name: list(axis.values) for axis in axes}, strength=strength)
    found = [Cell.of({**_fixed(axes), **row}) for row in rows]
    return tuple(dict.fromkeys((start, *found)))


def coverage(cells: Iterable[Mapping[str, str]], axes: Sequence[Axis], strength: int) -> Coverage:
    """What these cells cover of all combinations of `strength` values."""
    ran = list(cells)
    covered = possible = 0
    for group in itertools.combinations(axes, strength):
        seen = {tuple(axis.value(cell) for axis in group) for cell in ran}
        covered += len(seen)
        combinations = 1
        for axis in group:
            combinations *= len(axis.values)
        possible += combinations
    return Coverage(
        strength=strength,
        axes=tuple(axis.name for axis in axes),
        cells=len(ran),
        covered=covered,
        possible=possible,
    )


def leave_one_off(production: Mapping[str, str], axes: Sequence[Axis]) -> tuple[Cell, ...]:
    """The baseline, the production configuration, and that with one axis at a time at rest.

    Raises AxisError when production is the baseline: there is nothing to leave off.
    """
    start = Cell.of({**_fixed(axes), **baseline(axes)})
    there = Cell.of({**start, **production})
    away = [axis for axis in axes if axis.value(there) != axis.baseline]
    if not away:
        raise AxisError(f"production={there} is the baseline; name the values that you run with")
    return tuple(
        dict.fromkeys((start, there, *(there.with_value(a.name, a.baseline) for a in away)))
    )

"""The cells that a system starts in, asked of it before anything runs.

A system refuses some cells. In a covering array a refused cell would take the combinations down
that only it covered, so what is refused has to be known before the array is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from harness.axes.base import Axis
from harness.axes.lattice import AXES, Cell, baseline

Refusal = Callable[[Mapping[str, str]], str | None]
"""Why a system does not start in a cell; None: it does."""
Combination = tuple[tuple[str, str], ...]
"""Values of different axes, in the order of the axes."""


def at_rest(axes: Sequence[Axis]) -> Cell:
    """The baseline over these axes, complete: primary axes that are not varied are in it too."""
    varied = {axis.name for axis in axes}
    fixed = {name: axis.baseline for name, axis in AXES.items() if name not in varied}
    return Cell.of({**fixed, **baseline(axes)})


def combinations(
    cell: Mapping[str, str], axes: Sequence[Axis], strength: int
) -> Iterator[Combination]:
    """Every combination of so many of the cell's values."""
    return itertools.combinations([(axis.name, axis.value(cell)) for axis in axes], strength)


class Startable:
    """Owns: the cells over some axes that a system starts in. Every cell is asked about."""

    def __init__(self, axes: Sequence[Axis], refusal: Refusal) -> None:
        self.axes, self._refusal = tuple(axes), refusal
        self._start = at_rest(axes)
        names = [axis.name for axis in axes]
        rows = itertools.product(*(axis.values for axis in axes))
        every = (Cell.of({**self._start, **dict(zip(names, row, strict=True))}) for row in rows)
        self.cells = tuple(cell for cell in every if refusal(cell) is None)

    @property
    def refused(self) -> Mapping[Combination, str]:
        """Each value that no startable cell has, and each pair of such as have some -> why not."""
        found: dict[Combination, str] = {}
        for size in (1, 2):
            kept = self.combinations(size)
            for group in itertools.combinations(self.axes, size):
                for row in itertools.product(*(axis.values for axis in group)):
                    values = tuple(zip((axis.name for axis in group), row, strict=True))
                    if values not in kept and not any((value,) in found for value in values):
                        found[values] = self._reason(values)
        return found

    def _reason(self, values: Combination) -> str:
        """Asked of a cell in which nothing but these values is in the way, where there is one."""
        known, wanted = set(self.cells), set(values[:-1])
        near = [cell for cell in self.cells if wanted <= set(self._values(cell))]
        cells = [Cell.of({**cell, **dict(values)}) for cell in near or (self._start,)]
        axes = [axis for axis in self.axes if axis.name in dict(values)]

        def alone(cell: Cell) -> bool:
            return all(any(cell.with_value(a.name, v) in known for v in a.values) for a in axes)

        return self._refusal(next((cell for cell in cells if alone(cell)), cells[0])) or ""

    def _values(self, cell: Cell) -> Iterator[tuple[str, str]]:
        return ((axis.name, axis.value(cell)) for axis in self.axes)

    def combinations(self, strength: int) -> frozenset[Combination]:
        """The combinations of so many values that some of the cells has."""
        return frozenset(c for cell in self.cells for c in combinations(cell, self.axes, strength))

    def complete(self, cells: Iterable[Cell], strength: int) -> Iterator[Cell]:
        """Those of `cells` that are startable, then as many more as cover what is left."""
        known, missing = set(self.cells), set(self.combinations(strength))
        for cell in cells:
            if cell in known:
                missing.difference_update(combinations(cell, self.axes, strength))
                yield cell
        while missing:
            best = max(self.cells, key=lambda cell: len(missing & self._of(cell, strength)))
            missing -= self._of(best, strength)
            yield best

    def _of(self, cell: Cell, strength: int) -> set[Combination]:
        return set(combinations(cell, self.axes, strength))

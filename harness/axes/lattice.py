"""The lattice: every combination of axis values, and every pair of cells one axis apart."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.axes.async_scheduling import ASYNC
from harness.axes.attention import ATTENTION
from harness.axes.base import Axis, AxisError, Plan
from harness.axes.chunk import CHUNK
from harness.axes.compile import COMPILE
from harness.axes.evidence import Json
from harness.axes.graph import GRAPH
from harness.axes.memory import MEMORY
from harness.axes.pipeline import PIPELINE
from harness.axes.tensor_parallel import TENSOR_PARALLEL
from harness.record import Tier
from harness.registry import Table

AXES: Mapping[str, Axis] = {axis.name: axis for axis in (COMPILE, CHUNK, ASYNC, PIPELINE)}
"""The primary axes, in the order cells are written. Every cell names them."""
SECONDARY: Mapping[str, Axis] = {
    axis.name: axis for axis in (*MEMORY, TENSOR_PARALLEL, GRAPH, ATTENTION)
}
"""The secondary axes: varied on demand only."""
ALL_AXES: Mapping[str, Axis] = Table("axes", Axis, {**AXES, **SECONDARY})
"""The secondary axes behind them, and last those of other distributions. A cell names one of these
only away from its baseline, so that the cells of a lattice, and the baseline's name, do not depend
on which other axes exist."""


def _behind() -> tuple[Axis, ...]:
    """Every axis that is no primary one."""
    return tuple(axis for name, axis in ALL_AXES.items() if name not in AXES)


def _rests(name: str, value: str) -> bool:
    axis = ALL_AXES.get(name)
    return axis is not None and value == axis.baseline


_STRICTEST_FIRST = (Tier.EXACT, Tier.REORDERED, Tier.KERNEL)


@dataclass(frozen=True, slots=True, eq=False)
class Cell(Mapping[str, str]):
    """One point of the lattice: a frozen, hashable mapping of axis name to value.

    Equal to any mapping with the same items, so cells read back from records compare as they are.
    """

    items_: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Cell:
        """A cell with these values, axes of the table first and in its order."""
        order = {name: index for index, name in enumerate(ALL_AXES)}
        kept = (name for name in values if name in AXES or not _rests(name, values[name]))
        names = sorted(kept, key=lambda name: (order.get(name, len(order)), name))
        return cls(tuple((name, values[name]) for name in names))

    @classmethod
    def parse(cls, text: str, axes: Sequence[Axis] = tuple(AXES.values())) -> Cell:
        """`compile=eager,chunk=whole,...`; axes left out take their baseline. Raises AxisError."""
        table = {axis.name: axis for axis in (*axes, *_behind())}
        values = {axis.name: axis.baseline for axis in axes}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, separator, value = part.partition("=")
            if not separator or name not in table:
                raise AxisError(f"{part!r} is not AXIS=VALUE; axes: {', '.join(table)}")
            values[name] = table[name].check(value)
        return cls.of(values)

    def __getitem__(self, name: str) -> str:
        for key, value in self.items_:
            if key == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items_)

    def __len__(self) -> int:
        return len(self.items_)

    def __hash__(self) -> int:
        return hash(frozenset(self.items_))

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.items_)

    @property
    def cell_id(self) -> str:
        """`compile=eager,chunk=whole,async=sync,pp=1`"""
        return str(self)

    def with_value(self, name: str, value: str) -> Cell:
        """This cell with one axis changed."""
        return Cell.of({**self, name: value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Two cells that differ in `axis` only; `a` holds the value that comes first in the axis."""

    axis: str
    a: Cell
    b: Cell


def select(names: Iterable[str] | None = None) -> tuple[Axis, ...]:
    """Axes by name in the table's order; None: the primary ones. AxisError for an unknown one."""
    wanted = set(AXES if names is None else names)
    unknown = sorted(wanted - set(ALL_AXES))
    if unknown:
        raise AxisError(f"unknown axis {', '.join(unknown)}; valid: {', '.join(ALL_AXES)}")
    return tuple(axis for name, axis in ALL_AXES.items() if name in wanted)


def baseline(axes: Sequence[Axis] = tuple(AXES.values())) -> Cell:
    """The cell with every axis at its baseline."""
    return Cell.of({axis.name: axis.baseline for axis in axes})


def lattice(
    axes: Sequence[Axis] = tuple(AXES.values()), fixed: Mapping[str, str] | None = None
) -> tuple[Cell, ...]:
    """Every combination of the axes' values, baseline first.

    `fixed` pins axes that are not varied (`--only`), so that cells stay complete.
    """
    choices = itertools.product(*(axis.values for axis in axes))
    names = [axis.name for axis in axes]
    cells = [Cell.of({**(fixed or {}), **dict(zip(names, c, strict=True))}) for c in choices]
    start = Cell.of({**(fixed or {}), **baseline(axes)})
    return (start, *(cell for cell in cells if cell != start))


def differing(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the axes in which two cells differ, in the table's order."""
    found = [
        name
        for name in {**a, **b}
        if a.get(name) != b.get(name)
        # A secondary axis that one side names at rest and the other does not is at rest in both.
        and (name in AXES or not all(_rests(name, cell[name]) for cell in (a, b) if name in cell))
    ]
    if len(found) < 2:
        return tuple(found)
    order = {name: index for index, name in enumerate(ALL_AXES)}
    return tuple(sorted(found, key=lambda name: (order.get(name, len(order)), name)))


def edges(cells: Iterable[Cell]) -> tuple[Edge, ...]:
    """Every pair of the given cells that is exactly one axis apart (32 for the full 2^4)."""
    found = []
    for a, b in itertools.combinations(tuple(cells), 2):
        names = differing(a, b)
        if len(names) == 1:
            axis = ALL_AXES.get(names[0])
            swap = axis is not None and axis.values.index(axis.value(a)) > axis.values.index(
                axis.value(b)
            )
            found.append(Edge(axis=names[0], a=b, b=a) if swap else Edge(axis=names[0], a=a, b=b))
    return tuple(found)


def face(cells: Iterable[Cell], turn: int) -> tuple[Cell, ...]:
    """The half of the cells in which one axis, chosen in turn, is at its baseline."""
    found = tuple(cells)
    varied = [n for n in AXES if len({cell[n] for cell in found if n in cell}) > 1]
    if not varied:
        return found
    name = varied[turn % len(varied)]
    return tuple(cell for cell in found if cell[name] == AXES[name].baseline)


def idle(cell: Mapping[str, str]) -> str | None:
    """Why one of the cell's values cannot act in it, whatever the case; None: each can."""
    return next(filter(None, (ALL_AXES[name].idle(cell) for name in cell)), None)


def plan_key(cell: Mapping[str, str]) -> tuple[str, ...]:
    """What cells must share to be held to one recorded plan: the values that decide plans."""
    return tuple(axis.value(cell) for axis in ALL_AXES.values() if axis.replans)


def chosen_cells(cells: Iterable[Cell], choice: str) -> tuple[Cell, ...]:
    """`lattice`: all of them; `alone`: the baseline, each value alone, and all together."""
    found = tuple(cells)
    if choice == "lattice":
        return found
    away = {cell: sum(cell[n] != ALL_AXES[n].baseline for n in cell) for cell in found}
    most = max(away.values(), default=0)
    return tuple(cell for cell in found if away[cell] <= 1 or away[cell] == most)


def admitted(cells: Iterable[Cell], refused: Iterable[Mapping[str, str]]) -> tuple[Cell, ...]:
    """The cells that could be started, in order; refused ones are reported apart, never judged."""
    gone = {Cell.of(cell) for cell in refused}
    return tuple(cell for cell in cells if cell not in gone)


def inapplicable(
    a: Mapping[str, str],
    b: Mapping[str, str],
    lengths: Sequence[int],
    plan_a: Plan,
    plan_b: Plan,
    *,
    surely: Collection[str] = (),
) -> str | None:
    """Why a pair of cells cannot be told apart by this case, known before either ran; else None.

    `surely`: axes that the case alone says can act, so that no plan is an excuse.
    """
    for name in differing(a, b):
        if name in surely:
            continue
        for cell, plan in ((a, plan_a), (b, plan_b)):
            reason = ALL_AXES[name].applicable(cell, lengths, plan)
            if reason is not None:
                return reason
    return None


def tier_between(
    names: Iterable[str], witness_a: Mapping[str, Json], witness_b: Mapping[str, Json]
) -> Tier:
    """The loosest tier of the axes two runs differ in; no axis at all is exact.

    A system that schedules freely cannot be given a plan to replay. Where its plans came out equal
    it is held to the same bits all the same; where they did not, its sums had other companions.
    """
    tiers = [ALL_AXES[name].tier_between(witness_a, witness_b) for name in names]
    tier = max(tiers, key=_STRICTEST_FIRST.index, default=Tier.EXACT)
    if tier is Tier.EXACT and tiers and _scheduled_otherwise(witness_a, witness_b):
        return Tier.REORDERED
    return tier


def _scheduled_otherwise(a: Mapping[str, Json], b: Mapping[str, Json]) -> bool:
    free = any((w.get("flags") or {}).get("scheduling") == "free" for w in (a, b))
    return free and any(_listed(a, k) != _listed(b, k) for k in ("plan_digest", "padded_tokens"))


def _listed(witness: Mapping[str, Json], key: str) -> Json:
    value = witness.get(key)
    return list(value) if isinstance(value, tuple) else value

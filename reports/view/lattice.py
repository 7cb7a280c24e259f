"""One map per checkpoint: every cell against the baseline, every edge between neighbours.

Rows and columns are Gray codes of the axes, so cells one axis apart stand side by side, the first
and the last of a row or column included: four axes of two values fill a 4 x 4 map whose 32
neighbourhoods are the lattice's 32 edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.record import Comparison, Outcome, PairRecord, RefusalRecord
from reports.load import Run
from reports.view.cells import Cell, differing, gray, in_words, values_seen
from reports.view.looks import LOOKS, SEVERITY, Look, State, worst
from reports.view.margins import Margin, tightest
from reports.view.text import plural

FIGURES = {
    Outcome.FAIL: "fail",
    Outcome.ERROR: "broke",
    Outcome.VACUOUS: "vacuous",
    Outcome.PASS: "pass",
}
"""What a box says of its worst outcome."""
MAX_FIGURE = 13
"""Characters that a box has room for."""
MAX_AXES = 4
"""More axes do not fit a map; the rest are named and folded into their cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """One way of running. `settings` judges the same cell under other policies and buffers."""

    row: int
    column: int
    name: str
    baseline: bool
    look: Look
    counts: Mapping[str, int]
    settings: Look
    figures: tuple[str, ...]
    """Its counts in a line or two: `5 of 5 fail`, `8 n/a`."""
    margin: Margin | None
    reason: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeView:
    """Two cells one axis apart, judged against each other."""

    a: tuple[int, int]
    """(row, column)"""
    b: tuple[int, int]
    axis: str
    tier: str
    name: str
    look: Look
    counts: Mapping[str, int]
    margin: Margin | None
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """`row_axes` x `column_axes`; labels are one tuple of values per row and column."""

    checkpoint: str
    row_axes: tuple[str, ...]
    column_axes: tuple[str, ...]
    row_labels: tuple[Cell, ...]
    column_labels: tuple[Cell, ...]
    cells: tuple[CellView, ...]
    edges: tuple[EdgeView, ...]
    judged_cells: int
    possible_cells: int
    refused_cells: int
    judged_edges: int
    possible_edges: int
    folded_axes: tuple[str, ...]
    refusals: tuple[tuple[str, int], ...]
    """Reason, cells that it refuses."""


def lattices(run: Run) -> tuple[Lattice, ...]:
    """A map for each checkpoint of the manifest that has pairs or refusals."""
    names = [c.name for c in run.manifest.checkpoints]
    extra = [p.checkpoint for p in run.pairs] + [r.checkpoint for r in run.refusals]
    pairs: dict[str, list[PairRecord]] = {}
    for pair in run.pairs:
        pairs.setdefault(pair.checkpoint, []).append(pair)
    maps = []
    for name in dict.fromkeys([*names, *extra]):
        refused = [r for r in run.refusals if r.checkpoint == name]
        if pairs.get(name) or refused:
            maps.append(_Builder(run, name, pairs.get(name, []), refused).build())
    return tuple(maps)


class _Builder:
    """Owns: the grouping of one checkpoint's pairs by cell and edge while its map is made."""

    def __init__(
        self, run: Run, checkpoint: str, pairs: list[PairRecord], refused: list[RefusalRecord]
    ) -> None:
        self.checkpoint, self.refused = checkpoint, refused
        seen = [c for p in pairs for c in (p.cell_a, p.cell_b) if c]
        values = values_seen(run.manifest.axes, [*seen, *(r.cell for r in refused)])
        self.axes = tuple(values)[:MAX_AXES]
        self.folded = tuple(values)[MAX_AXES:]
        self.values = [values[axis] for axis in self.axes]
        self.baseline: Cell = tuple(v[0] for v in self.values)
        self.of_cell: dict[Cell, list[PairRecord]] = {}
        self.of_settings: dict[Cell, list[PairRecord]] = {}
        self.of_edge: dict[frozenset[Cell], list[PairRecord]] = {}
        for pair in pairs:
            self._file(pair)
        rest = {axis.name: axis.baseline for axis in run.manifest.axes}
        self.reasons: dict[Cell, str] = {
            cell: record.reason
            for record in refused
            # One that sets an axis which is not drawn leaves the cells that are drawn as they are.
            if all(record.cell.get(a) in (None, rest.get(a)) for a in self.folded)
            for cell in self._matching(record.cell)
        }

    def _cell(self, cell: Mapping[str, str]) -> Cell:
        return tuple(cell.get(a, v[0]) for a, v in zip(self.axes, self.values, strict=True))

    def _all(self) -> list[Cell]:
        codes = gray([len(v) for v in self.values])
        return [tuple(v[d] for v, d in zip(self.values, code, strict=True)) for code in codes]

    def _matching(self, partial: Mapping[str, str]) -> list[Cell]:
        """A refusal may name only the axes that matter: it covers every cell with them."""
        wanted = [(i, partial[axis]) for i, axis in enumerate(self.axes) if axis in partial]
        return [cell for cell in self._all() if all(cell[i] == value for i, value in wanted)]

    def _file(self, pair: PairRecord) -> None:
        a, b = self._cell(pair.cell_a), self._cell(pair.cell_b)
        if pair.comparison is Comparison.EDGE:
            self.of_edge.setdefault(frozenset((a, b)), []).append(pair)
        elif pair.comparison is Comparison.SETTING:
            self.of_settings.setdefault(b, []).append(pair)
        else:
            self.of_cell.setdefault(b, []).append(pair)

    def build(self) -> Lattice:
        split = (len(self.axes) + 1) // 2
        rows, columns = self.values[:split], self.values[split:]
        row_labels = tuple(
            tuple(v[d] for v, d in zip(rows, code, strict=True))
            for code in gray([len(v) for v in rows])
        )
        column_labels = tuple(
            tuple(v[d] for v, d in zip(columns, code, strict=True))
            for code in gray([len(v) for v in columns])
        )
        place = {
            row + column: (r, c)
            for r, row in enumerate(row_labels)
            for c, column in enumerate(column_labels)
        }
        cells = tuple(self._view(cell, at) for cell, at in place.items())
        edges = self._edges(place)
        open_cells = [c for c in place if c not in self.reasons]
        reasons = Counter(self.reasons.values())
        return Lattice(
            checkpoint=self.checkpoint,
            row_axes=self.axes[:split],
            column_axes=self.axes[split:],
            row_labels=row_labels,
            column_labels=column_labels,
            cells=cells,
            edges=edges,
            judged_cells=sum(_judged(c.counts) for c in cells),
            possible_cells=len(open_cells),
            refused_cells=len(place) - len(open_cells),
            judged_edges=sum(_judged(e.counts) for e in edges),
            possible_edges=sum(
                _apart(a, b) == 1 for i, a in enumerate(open_cells) for b in open_cells[i + 1 :]
            ),
            folded_axes=self.folded,
            refusals=tuple(reasons.most_common()),
        )

    def _view(self, cell: Cell, at: tuple[int, int]) -> CellView:
        pairs = self.of_cell.get(cell, [])
        settings = self.of_settings.get(cell, [])
        state = worst(p.outcome for p in pairs)
        reason = self.reasons.get(cell, "")
        if state is State.ABSENT and reason:
            state = State.REFUSED
        counts, margin = _counts(pairs), tightest(pairs)
        name = in_words(dict(zip(self.axes, cell, strict=True)))
        is_baseline = cell == self.baseline
        parts = [f"{name}{' (baseline)' if is_baseline else ''}: {_told(counts)}"]
        if state is State.REFUSED:
            parts = [f"{name}: refused. {reason}"]
        elif is_baseline:
            parts = [f"{name}: the baseline; against the float64 oracle: {_told(counts)}"]
        if margin is not None:
            parts.append(f"{margin.heading}: {margin.text}")
        if settings:
            parts.append(f"the same cell under other settings: {_told(_counts(settings))}")
        return CellView(
            row=at[0],
            column=at[1],
            name=name,
            baseline=is_baseline,
            look=LOOKS[state],
            counts=counts,
            settings=LOOKS[worst(p.outcome for p in settings)],
            figures=("baseline",) if is_baseline else figures(counts),
            margin=margin,
            reason=reason,
            summary="; ".join(parts) + ("" if state is State.REFUSED else "."),
        )

    def _edges(self, place: Mapping[Cell, tuple[int, int]]) -> tuple[EdgeView, ...]:
        views = []
        for ends, pairs in self.of_edge.items():
            places = sorted(place[cell] for cell in ends)
            if len(places) != 2:
                continue
            a, b = (next(c for c, at in place.items() if at == p) for p in places)
            named_a, named_b = (dict(zip(self.axes, c, strict=True)) for c in (a, b))
            axes = differing(named_a, named_b)
            shared = {k: v for k, v in named_a.items() if k not in axes}
            changes = ", ".join(f"{x}: {named_a[x]} against {named_b[x]}" for x in axes)
            name = f"{changes}, where {in_words(shared)}" if shared else changes
            counts, margin = _counts(pairs), tightest(pairs)
            views.append(
                EdgeView(
                    a=places[0],
                    b=places[1],
                    axis=" and ".join(axes),
                    tier=", ".join(sorted({str(p.tier) for p in pairs})),
                    name=name,
                    look=LOOKS[worst(p.outcome for p in pairs)],
                    counts=counts,
                    margin=margin,
                    summary=f"{name}: {_told(counts)}"
                    + (f"; {margin.heading}: {margin.text}." if margin else "."),
                )
            )
        return tuple(sorted(views, key=lambda e: (e.a, e.b)))


def _apart(a: Cell, b: Cell) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def _judged(counts: Mapping[str, int]) -> bool:
    """Whether any of its comparisons was judged; errors beside them take nothing away."""
    return bool(counts.get(Outcome.PASS, 0) + counts.get(Outcome.FAIL, 0))


def _counts(pairs: Iterable[PairRecord]) -> dict[str, int]:
    counted = Counter(str(p.outcome) for p in pairs)
    return {str(s): counted[s] for s in SEVERITY if counted[s]}


def figures(counts: Mapping[str, int]) -> tuple[str, ...]:
    """What is bad of what was judged, then what could not apply: `5 of 5 fail`, `8 n/a`."""
    idle = counts.get(Outcome.INAPPLICABLE, 0)
    judged = sum(counts.values()) - idle
    word = next((w for w in FIGURES if counts.get(w)), None)
    lines = []
    if word == Outcome.PASS and counts[word] == judged:
        lines.append(f"{judged:,} pass")
    elif word is not None:
        line = f"{counts[word]:,} of {judged:,} {FIGURES[word]}"
        lines.append(line if len(line) <= MAX_FIGURE else line.replace(" of ", "/"))
    return (*lines, *([f"{idle:,} n/a"] if idle else []))


def _told(counts: Mapping[str, int]) -> str:
    if not counts:
        return "no comparison"
    total = sum(counts.values())
    return f"{plural(total, 'comparison')}, " + ", ".join(f"{n:,} {o}" for o, n in counts.items())

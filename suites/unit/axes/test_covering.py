"""Few cells cover every combination of values, and the number says how many were.

Passes wrongly if what is counted as covered did not come from the cells, or one cell were enough.
Ruled out by suites/meta/test_suites_can_fail.py: `coverage-is-always-full`,
`the-baseline-covers-all`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.axes import (
    ALL_AXES,
    AXES,
    AxisError,
    Startable,
    baseline,
    coverage,
    covering,
    lattice,
    leave_one_off,
    select,
)
from harness.axes.startable import Refusal

EVERY = select(ALL_AXES)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(list(ALL_AXES)), min_size=2, unique=True).map(select),
    st.integers(1, 3),
)
def test_every_combination_of_values_occurs(axes: tuple, strength: int) -> None:  # type: ignore[type-arg]
    strength = min(strength, len(axes))
    cells = covering(axes, strength)
    assert cells[0] == baseline()
    assert len(set(cells)) == len(cells)
    for group in itertools.combinations(axes, strength):
        wanted = set(itertools.product(*(axis.values for axis in group)))
        assert {tuple(axis.value(cell) for axis in group) for cell in cells} == wanted
    found = coverage(cells, axes, strength)
    assert found.covered == found.possible > 0


def test_pairs_of_all_axes_need_few_cells() -> None:
    cells = covering(EVERY, 2)
    assert len(cells) <= 20
    size = 1
    for axis in EVERY:
        size *= len(axis.values)
    assert size > 200


def test_the_number_falls_with_each_cell_that_did_not_run() -> None:
    axes = tuple(AXES.values())
    full = coverage(lattice(), axes, 2)
    assert (full.covered, full.possible) == (24, 24)
    assert str(full) == "2-way coverage of 4 axes by 16 cells: 24 of 24 combinations of values"
    whole_only = [cell for cell in lattice() if cell["chunk"] == "whole"]
    assert coverage(whole_only, axes, 2).covered == 18
    assert coverage([baseline()], axes, 1).covered == 4


def test_production_is_left_one_axis_at_a_time() -> None:
    cells = leave_one_off({"compile": "compiled", "async": "async", "buffers": "ring"}, EVERY)
    assert len(cells) == 5
    start, there, *neighbours = cells
    assert start == baseline()
    assert there["buffers"] == "ring"
    for cell in neighbours:
        assert (
            sum(
                cell.get(n, ALL_AXES[n].baseline) != there.get(n, ALL_AXES[n].baseline)
                for n in ALL_AXES
            )
            == 1
        )


@pytest.mark.parametrize("strength", [0, 5])
def test_an_impossible_strength_is_refused(strength: int) -> None:
    with pytest.raises(AxisError, match=f"strength={strength} is not possible over 4 axes"):
        covering(tuple(AXES.values()), strength)


def test_a_production_that_is_the_baseline_is_refused() -> None:
    with pytest.raises(AxisError, match="is the baseline; name the values that you run with"):
        leave_one_off({}, EVERY)


Values = frozenset[tuple[str, str]]
SOME = select(["compile", "chunk", "pp", "block_size", "kv_pool", "graph", "tp"])


def refusing(*wrong: Values) -> Refusal:
    """A system that does not start where all values of one of these come together."""

    def refusal(cell: Mapping[str, str]) -> str | None:
        values = {(axis.name, axis.value(cell)) for axis in SOME}
        return next((f"not {sorted(w)}" for w in wrong if w <= values), None)

    return refusal


def of(text: str) -> Values:
    """`chunk=chunked,pp=2` as values."""
    return frozenset((name, value) for name, value in (part.split("=") for part in text.split(",")))


def test_what_refusals_hang_on_is_found() -> None:
    wrong = [
        *("graph=fitted,compile=eager", "graph=coarse,compile=eager", "pp=2"),
        *("block_size=1,kv_pool=small", "block_size=1,chunk=chunked", "graph=fitted,tp=2"),
    ]
    refusal = refusing(*map(of, wrong))
    found = Startable(SOME, refusal)
    assert {frozenset(values) for values in found.refused} == set(map(of, wrong))
    assert set(found.cells) == {
        cell for cell in lattice(SOME, {"async": "sync"}) if not refusal(cell)
    }


WRONG = st.sampled_from(SOME).flatmap(
    lambda axis: st.tuples(st.just(axis.name), st.sampled_from(axis.values))
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(WRONG, min_size=1, max_size=3).map(frozenset), max_size=4))
def test_every_combination_that_can_be_started_occurs(wrong: list[Values]) -> None:
    rest = {(axis.name, axis.baseline) for axis in SOME}
    refusal = refusing(*(w for w in wrong if not w <= rest))
    startable = Startable(SOME, refusal)
    cells = covering(SOME, 2, startable)
    assert not [cell for cell in cells if refusal(cell)]
    found = coverage(cells, SOME, 2, startable)
    assert found.covered == found.possible
    # Asked of every cell, whatever refusals were found to hang on.
    every = [cell for cell in lattice(SOME, {"async": "sync"}) if not refusal(cell)]
    assert coverage(every, SOME, 2).covered == found.possible
    assert found.possible + found.refused == coverage(every, SOME, 2).possible

"""Few cells cover every combination of values, and the number says how many were."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.axes import (
    ALL_AXES,
    AXES,
    AxisError,
    baseline,
    coverage,
    covering,
    lattice,
    leave_one_off,
    select,
)

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
    assert len(cells) <= 16
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

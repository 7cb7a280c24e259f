"""The lattice is complete, its edges are one axis apart, and cells are plain mappings.

Passes wrongly if cells that differ in several axes counted as one axis apart. Ruled out by
suites/meta/test_suites_can_fail.py: `cells-differ-in-one-axis-at-most`.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.axes import (
    AXES,
    AxisError,
    Cell,
    admitted,
    baseline,
    differing,
    edges,
    face,
    lattice,
)
from harness.axes.lattice import select


def test_four_axes_make_sixteen_cells_and_thirty_two_edges() -> None:
    cells = lattice()
    assert len(set(cells)) == 16
    assert len(edges(cells)) == 32
    assert cells[0] == baseline()
    assert str(cells[0]) == "compile=eager,chunk=whole,async=sync,pp=1"


def test_refused_cells_leave_eight_cells_and_twelve_edges() -> None:
    refused = [dict(cell) for cell in lattice() if cell["chunk"] == "chunked"]
    kept = admitted(lattice(), refused)
    assert len(kept) == 8
    assert len(edges(kept)) == 12
    assert {cell["chunk"] for cell in kept} == {"whole"}


def test_an_edge_differs_in_its_axis_only_and_starts_at_the_first_value() -> None:
    for edge in edges(reversed(lattice())):
        assert differing(edge.a, edge.b) == (edge.axis,)
        values = AXES[edge.axis].values
        assert values.index(edge.a[edge.axis]) < values.index(edge.b[edge.axis])


def test_fewer_axes_keep_cells_complete() -> None:
    axes = select(["chunk", "compile"])
    cells = lattice(axes, fixed={"async": "async", "pp": "2"})
    assert len(cells) == 4
    assert len(edges(cells)) == 4
    assert str(cells[0]) == "compile=eager,chunk=whole,async=async,pp=2"


def test_a_cell_equals_the_mapping_a_record_gives_back() -> None:
    cell = Cell.parse("pp=2")
    assert cell == json.loads(json.dumps(dict(cell)))
    assert Cell.of(dict(cell)) in {cell}


@settings(max_examples=40)
@given(st.sampled_from(lattice()))
def test_a_cell_reads_back_from_its_text(cell: Cell) -> None:
    assert Cell.parse(str(cell)) == cell
    assert Cell.parse(cell.cell_id).cell_id == cell.cell_id


@pytest.mark.parametrize("text", ["speed=fast", "compile", "compile=sometimes"])
def test_a_cell_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(AxisError, match=r"axes: |valid: "):
        Cell.parse(text)


def test_an_unknown_axis_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(AxisError, match="speed; valid: compile, chunk, async, pp"):
        select(["speed"])


def test_a_face_is_the_half_with_one_axis_at_rest() -> None:
    cells = lattice()
    faces = [face(cells, turn) for turn in range(len(AXES))]
    for name, cells_of_face in zip(AXES, faces, strict=True):
        assert len(cells_of_face) == len(cells) // 2
        assert {cell[name] for cell in cells_of_face} == {AXES[name].baseline}
        assert cells_of_face[0] == baseline()
    encoder = face([cell for cell in cells if cell["chunk"] == "whole"], 1)
    assert len(encoder) == 4  # the axis that never varies is passed over

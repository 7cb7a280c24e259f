"""The lattice map: which cell stands where, what it shows, and which edges it draws.

Passes wrongly if the comparisons of a cell all ended alike, so that the mildest outcome would do
for the worst. Ruled out by suites/meta/test_suites_can_fail.py: `a-cell-shows-its-mildest-outcome`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.record import Comparison, Measurement, Outcome, PairRecord, RefusalRecord
from reports.html.lattice_drawing import draw_lattice
from reports.load import Run, load_run
from reports.view.cells import gray
from reports.view.lattice import Lattice, figures, lattices
from reports.view.looks import State, worst
from reports.view.margins import tightest
from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import BASELINE, REFUSAL


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(clean_run(num_cases=2).write(tmp_path_factory.mktemp("run")))


def cell_named(lattice: Lattice, cell: Mapping[str, str]) -> str:
    name = ", ".join(f"{axis}={value}" for axis, value in cell.items())
    return next(c.look.css for c in lattice.cells if c.name == name)


@pytest.mark.parametrize("radices", [(2,), (2, 2), (3, 2), (2, 3, 2)])
def test_gray_codes_visit_all_and_change_one_digit(radices: tuple[int, ...]) -> None:
    codes = gray(radices)
    assert sorted(codes) == sorted(itertools.product(*(range(r) for r in radices)))
    for a, b in itertools.pairwise(codes):
        assert sum(x != y for x, y in zip(a, b, strict=True)) == 1


def test_the_worst_outcome_decides() -> None:
    assert worst([]) is State.ABSENT
    assert worst([Outcome.PASS, Outcome.INAPPLICABLE]) is State.PASS
    assert worst([Outcome.PASS, Outcome.VACUOUS, Outcome.ERROR]) is State.ERROR
    assert worst([Outcome.ERROR, Outcome.FAIL]) is State.FAIL


def test_a_decoder_has_16_cells_and_32_edges_between_neighbours(clean: Run) -> None:
    lattice = lattices(clean)[0]
    assert (lattice.judged_cells, lattice.possible_cells) == (16, 16)
    assert (lattice.judged_edges, lattice.possible_edges) == (32, 32)
    for edge in lattice.edges:
        down, right = (abs(a - b) for a, b in zip(edge.a, edge.b, strict=True))
        assert sorted((down, right)) in ([0, 1], [0, 3]), "neighbours, round the back included"
    assert len({(e.a, e.b) for e in lattice.edges}) == 32


@pytest.mark.parametrize(
    ("counts", "lines"),
    [
        ({"FAIL": 5, "INAPPLICABLE": 8}, ("5 of 5 fail", "8 n/a")),
        ({"FAIL": 1, "PASS": 11}, ("1 of 12 fail",)),
        ({"FAIL": 330}, ("330/330 fail",)),
        ({"PASS": 2, "INAPPLICABLE": 10}, ("2 pass", "10 n/a")),
        ({"PASS": 12}, ("12 pass",)),
        ({"ERROR": 1, "PASS": 2, "INAPPLICABLE": 3}, ("1 of 3 broke", "3 n/a")),
        ({"INAPPLICABLE": 4}, ("4 n/a",)),
        ({}, ()),
    ],
)
def test_a_box_counts_what_was_judged_and_apart_what_could_not_apply(
    counts: Mapping[str, int], lines: tuple[str, ...]
) -> None:
    assert figures(counts) == lines


def test_a_box_of_the_map_shows_its_figures(clean: Run) -> None:
    lattice = lattices(clean)[0]
    chunked = next(c for c in lattice.cells if c.name.endswith("chunk=chunked, async=sync, pp=1"))
    assert chunked.figures == ("1 pass", "1 n/a")


def measured(metric: str, value: float, bound: float) -> Measurement:
    return Measurement(metric=metric, value=value, bound=bound)


def test_what_allows_nothing_stands_beside_the_worst_that_has_a_size(clean: Run) -> None:
    rank = measured("rank_inversions", 2.0, 0.0)
    far = measured("relative_l2", 1.3, 1e-5)
    margin = tightest([replace(clean.pairs[0], measurements=(rank, far))])
    assert margin is not None
    assert margin.heading == "worst against its bound"
    assert margin.text == (
        "rank changed (rank_inversions 2, 0 allowed); "
        "relative_l2 1.3 (130,000 times the bound 1e-5)"
    )
    margin = tightest([replace(clean.pairs[0], measurements=(replace(rank, value=0.0),))])
    assert margin is not None
    assert (margin.heading, margin.text) == (
        "closest to its bound",
        "rank_inversions 0 (0 allowed)",
    )


def test_an_encoder_shows_its_refusals(clean: Run) -> None:
    lattice = lattices(clean)[2]
    assert (lattice.judged_cells, lattice.possible_cells, lattice.refused_cells) == (8, 8, 8)
    assert (lattice.judged_edges, lattice.possible_edges) == (12, 12)
    assert lattice.refusals == ((REFUSAL, 8),)
    assert cell_named(lattice, BASELINE | {"chunk": "chunked"}) == "refused"


def test_only_the_failing_cells_and_edges_are_red(tmp_path: Path) -> None:
    lattice = lattices(load_run(failing_run(num_cases=2).write(tmp_path)))[0]
    red = {c.name for c in lattice.cells if c.look.css == "fail"}
    assert len(red) == 4
    assert all("compile=compiled" in n and "chunk=chunked" in n for n in red)
    axes = [e.axis for e in lattice.edges if e.look.css == "fail"]
    assert sorted(axes) == ["chunk"] * 4 + ["compile"] * 4


def test_a_failure_under_another_setting_is_marked_on_its_cell(clean: Run) -> None:
    at = next(i for i, p in enumerate(clean.pairs) if p.comparison is Comparison.SETTING)
    failed = replace(clean.pairs[at], outcome=Outcome.FAIL)
    run = replace(clean, pairs=(*clean.pairs[:at], failed, *clean.pairs[at + 1 :]))
    lattice = next(m for m in lattices(run) if m.checkpoint == failed.checkpoint)
    marked = [c for c in lattice.cells if c.settings.css == "fail"]
    assert len(marked) == 1
    assert marked[0].look.css == "pass"
    assert "1 FAIL" in marked[0].summary


def test_pairs_win_over_a_refusal_that_names_their_cell(clean: Run) -> None:
    wrong = RefusalRecord(checkpoint="tiny-qwen3", cell={"pp": "2"}, reason="mistaken")
    lattice = lattices(replace(clean, refusals=(wrong,)))[0]
    assert cell_named(lattice, BASELINE | {"pp": "2"}) == "pass"


def test_a_refusal_of_an_axis_that_is_not_drawn_refuses_no_cell_that_is(clean: Run) -> None:
    hidden = BASELINE | {"compile": "compiled", "tp": "2", "graph": "fitted"}
    refusal = RefusalRecord(checkpoint="tiny-qwen3", cell=hidden, reason="not together")
    lattice = lattices(replace(clean, refusals=(refusal,)))[0]
    assert {"tp", "graph"} == set(lattice.folded_axes)
    assert (lattice.possible_cells, lattice.refused_cells) == (16, 0)


def test_axes_beyond_four_are_folded_and_named(clean: Run) -> None:
    def more(pair: PairRecord) -> PairRecord:
        return replace(pair, cell_a={**pair.cell_a, "tp": "1"}, cell_b={**pair.cell_b, "tp": "2"})

    lattice = lattices(replace(clean, pairs=tuple(more(p) for p in clean.pairs)))[0]
    assert len(lattice.cells) == 16
    assert lattice.folded_axes == ("tp",)


def test_three_axes_and_three_values_are_drawn_too(clean: Run) -> None:
    pairs = []
    for value in ("a", "b", "c"):
        cell = {"compile": "compiled", "pp": "2", "kind": value}
        base = {"compile": "eager", "pp": "1", "kind": "a"}
        pairs.append(replace(clean.pairs[0], cell_a=base, cell_b=cell))
    lattice = lattices(replace(clean, pairs=tuple(pairs), refusals=()))[0]
    assert len(lattice.cells) == 12
    assert sum(c.look.css != "absent" for c in lattice.cells) == 3
    shape = draw_lattice(lattice)
    assert len({(c.x, c.y) for c in shape.cells}) == 12
    assert all(c.x + 92 <= shape.width and c.y + 62 <= shape.height for c in shape.cells)


def test_a_cell_with_passes_and_errors_is_judged(tmp_path: Path) -> None:
    recorded = clean_run(num_cases=2)
    broken = tuple(
        replace(r, outcome=Outcome.ERROR, reason="a side crashed", num_compared=0)
        if isinstance(r, PairRecord) and r.case_id.endswith("0")
        else r
        for r in recorded.records
    )
    before = lattices(load_run(recorded.write(tmp_path / "clean")))[0]
    after = lattices(load_run(replace(recorded, records=broken).write(tmp_path / "broken")))[0]
    assert {c.look.word for c in after.cells} == {"ERROR"}
    assert (after.judged_cells, after.judged_edges) == (before.judged_cells, before.judged_edges)
    assert after.judged_cells == after.possible_cells == 16

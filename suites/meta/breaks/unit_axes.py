"""Breaks of `suites/unit/axes`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="async-is-always-promised",
        suite="suites/unit/axes/test_overlap.py",
        red="test_what_settings_promise",
        at="harness.axes.overlap:cannot_overlap",
        instead=instead.returns(None),
    ),
    Break(
        name="every-witness-is-believed",
        suite="suites/unit/axes/test_axes.py",
        red="test_a_liar_is_not_witnessed_in_any_cell",
        at="harness.axes.base:Axis.witnessed",
        instead=instead.returns(None),
    ),
    Break(
        name="coverage-is-always-full",
        suite="suites/unit/axes/test_covering.py",
        red="test_the_number_falls_with_each_cell_that_did_not_run",
        at="harness.axes.covering:coverage",
        instead=instead.result(lambda found: replace(found, covered=found.possible)),
    ),
    Break(
        name="the-baseline-covers-all",
        suite="suites/unit/axes/test_covering.py",
        red="test_every_combination_of_values_occurs",
        at="harness.axes.covering:covering",
        instead=instead.result(lambda cells: cells[:1]),
    ),
    Break(
        name="cells-differ-in-one-axis-at-most",
        suite="suites/unit/axes/test_lattice.py",
        red="test_four_axes_make_sixteen_cells_and_thirty_two_edges",
        at="harness.axes.lattice:differing",
        instead=instead.result(lambda names: names[:1]),
    ),
    Break(
        name="secondary-witnesses-are-believed",
        suite="suites/unit/axes/test_secondary_axes.py",
        red="test_only_the_system_that_did_it_is_witnessed",
        at="harness.axes.base:Axis.witnessed",
        instead=instead.returns(None),
    ),
)

"""Breaks of `suites/unit/reports`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _without_nan(severity: Callable[..., float]) -> Callable[..., float]:
    """`severity`, for which a value that is not a number is no trouble."""
    return lambda value, bound: 0.0 if value != value else severity(value, bound)


def _mildest(worst: Callable[..., Any]) -> Callable[..., Any]:
    """`worst`, the other way round."""
    order = list(type(worst([])))
    return lambda outcomes: max((worst([o]) for o in outcomes), key=order.index, default=worst([]))


def _whatever_came_out(combinations: Callable[..., Any]) -> Callable[..., Any]:
    """`_combinations`, which counts what ran and was not judged."""

    def function(run: Any, record: Any) -> Any:
        pairs = tuple(replace(pair, outcome=type(pair.outcome)("PASS")) for pair in run.pairs)
        return combinations(replace(run, pairs=pairs), record)

    return function


class _Paler:
    """A file or folder in which the quiet ink of the light theme is hardly darker than paper."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __truediv__(self, name: str) -> _Paler:
        return _Paler(self._path / name)

    def read_text(self, encoding: str) -> str:
        text = self._path.read_text(encoding=encoding)
        head, _, rest = text.partition("--quiet: light-dark(#")
        return f"{head}--quiet: light-dark(#b0b0b0{rest[6:]}"


def _of_all(proof: Callable[..., Any]) -> Callable[..., Any]:
    """`proof`, which claims failures too."""
    return lambda run: tuple(proof.__globals__["_claims"](list(run.pairs)))


BREAKS: Final = (
    Break(
        name="idle-switches-hide-a-failure",
        suite="suites/unit/reports/test_conditions.py",
        red="test_only_what_was_judged_hides",
        at="reports.view.hiding:_added",
        instead=instead.returns({}),
    ),
    Break(
        name="what-merely-ran-was-reached",
        suite="suites/unit/reports/test_declared.py",
        red="test_what_was_run_and_not_judged_is_missing",
        at="reports.view.declared:_combinations",
        instead=_whatever_came_out,
    ),
    Break(
        name="a-square-shows-its-first-token",
        suite="suites/unit/reports/test_drawings.py",
        red="test_a_map_keeps_the_worst_of_what_it_joins",
        at="reports.html.map_drawing:largest",
        instead=instead.value(lambda values: values[0]),
    ),
    Break(
        name="nan-is-no-trouble",
        suite="suites/unit/reports/test_findings_view.py",
        red="test_worst_first_and_nan_worst_of_all",
        at="reports.view.findings:severity",
        instead=_without_nan,
    ),
    Break(
        name="the-page-escapes-nothing",
        suite="suites/unit/reports/test_html.py",
        red="test_hostile_text_stays_text",
        at="reports.html.render:_finalize",
        instead=instead.value(lambda value: Markup(value) if isinstance(value, str) else value),
    ),
    Break(
        name="a-cell-shows-its-mildest-outcome",
        suite="suites/unit/reports/test_lattice_view.py",
        red="test_only_the_failing_cells_and_edges_are_red",
        at="reports.view.lattice:worst",
        instead=_mildest,
    ),
    Break(
        name="a-killed-run-loads-as-whole",
        suite="suites/unit/reports/test_load.py",
        red="test_a_killed_run_loads_as_far_as_it_got",
        at="reports.load:Run.interrupted",
        instead=instead.returns(False),  # noqa: FBT003
    ),
    Break(
        name="a-metric-has-no-meaning",
        suite="suites/unit/reports/test_metrics.py",
        red="test_no_name_is_without_a_meaning",
        at="reports.view.metrics:MEANINGS",
        instead=lambda right: {k: v for k, v in right.items() if k != "oracle_error"},
    ),
    Break(
        name="a-histogram-loses-its-largest-values",
        suite="suites/unit/reports/test_noise_and_trust.py",
        red="test_a_strip_counts_every_value",
        at="reports.view.noise:_bins",
        instead=instead.result(lambda bins: bins[:-1]),
    ),
    Break(
        name="failures-are-claimed-to-agree",
        suite="suites/unit/reports/test_proof.py",
        red="test_ways_that_fail_are_not_among_those_that_agree",
        at="reports.view.proof:proof",
        instead=_of_all,
    ),
    Break(
        name="a-story-counts-every-comparison",
        suite="suites/unit/reports/test_story.py",
        red="test_corners_are_counted",
        at="reports.view.story:_alike",
        instead=instead.value(lambda run, lead: list(run.pairs)),
    ),
    Break(
        name="quiet-ink-is-pale",
        suite="suites/unit/reports/test_style.py",
        red="test_text_can_be_read",
        at="reports.html.render:TEMPLATES",
        instead=_Paler,
    ),
    Break(
        name="a-terminal-obeys-recorded-text",
        suite="suites/unit/reports/test_terminal.py",
        red="test_hostile_text_moves_no_cursor_and_reads_as_no_markup",
        at="reports.terminal:visible",
        instead=instead.value(str),
    ),
    Break(
        name="lost-records-are-no-problem",
        suite="suites/unit/reports/test_verdict.py",
        red="test_records_that_do_not_add_up_are_not_safe",
        at="reports.view.verdict:_problems",
        instead=instead.returns(()),
    ),
)

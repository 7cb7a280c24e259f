"""Noise strips, reasons, witnesses and power: aggregates that must lose nothing that matters.

Passes wrongly if what falls out of a histogram was left out of the count that it is held to as
well. Ruled out by suites/meta/test_suites_can_fail.py: `a-histogram-loses-its-largest-values`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from harness.record import Measurement, Outcome, PairRecord, Tier
from reports.html.render import render_text
from reports.html.strip_drawing import draw_strip
from reports.load import KILL_MATRIX, Run, load_run
from reports.view.coverage import coverage
from reports.view.noise import Strip, noise
from reports.view.page import build_page
from reports.view.reasons import MAX_GROUPS, grouped
from reports.view.trust import trust
from suites.unit.reports.fixtures import clean_run


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(clean_run(num_cases=3).write(tmp_path_factory.mktemp("run")))


def strips_of(run: Run, values: list[float], bounds: list[float]) -> list[Strip]:
    pair = replace(run.pairs[0], tier=Tier.KERNEL, outcome=Outcome.PASS, num_compared=1)
    pairs = tuple(
        replace(pair, measurements=(Measurement(metric="relative_l2", value=v, bound=b),))
        for v, b in zip(values, bounds, strict=True)
    )
    shown = noise(replace(run, pairs=pairs)).checkpoints[0]
    return [*shown.near, *shown.rest, *shown.still]


def test_a_strip_counts_every_value(clean: Run) -> None:
    values = [0.0, 0.0, 3e-9, 2e-8, 2.1e-8, 5e-6, math.nan]
    (strip,) = strips_of(clean, values, [1e-6] * 7)
    assert strip.values == 7
    assert strip.zeros + strip.not_finite + sum(n for _, n in strip.bins) == 7
    assert (strip.zeros, strip.not_finite, strip.over) == (2, 1, 2)
    assert strip.severity == math.inf, "what is not finite is worst"
    for low, _ in strip.bins:
        assert any(low <= math.log10(v) < low + strip.bin_width for v in values if v > 0)


def test_bounds_that_depend_on_length_are_both_shown(clean: Run) -> None:
    (strip,) = strips_of(clean, [1e-7, 2e-7], [1e-6, 4e-6])
    assert strip.bounds == (1e-6, 4e-6)
    shape = draw_strip(strip)
    assert shape.bounds[0] < shape.bounds[1] < shape.right
    assert all(shape.scale_x <= bar.x < shape.bounds[0] for bar in shape.bars)


def test_a_value_over_its_bound_is_drawn_as_such(clean: Run) -> None:
    (strip,) = strips_of(clean, [1e-9, 1e-2], [1e-6, 1e-6])
    assert [bar.over for bar in draw_strip(strip).bars] == [False, True]


def test_many_decades_stay_few_bins(clean: Run) -> None:
    values = [10.0**-i for i in range(300)]
    (strip,) = strips_of(clean, values, [1.0] * 300)
    assert len(strip.bins) <= 82
    assert sum(n for _, n in strip.bins) == 300


def test_zero_everywhere_is_told_without_a_picture(clean: Run) -> None:
    shown = noise(clean).checkpoints[0]
    assert {s.metric for s in shown.still} == {"ulp"}
    assert all(s.severity > 0 for s in shown.near)
    assert [s.severity for s in shown.near] == sorted(
        (s.severity for s in shown.near), reverse=True
    )


def test_reasons_that_differ_in_numbers_are_one_group(clean: Run) -> None:
    pair = clean.pairs[0]

    def because(reason: str) -> PairRecord:
        return replace(pair, outcome=Outcome.VACUOUS, reason=reason)

    reasons = grouped([because("chunks=1 of 64"), because("chunks=1 of 7"), because("no rank ran")])
    assert [(g.pairs, g.text) for g in reasons.groups] == [
        (2, "chunks=1 of 64"),
        (1, "no rank ran"),
    ]
    many = grouped([because(f"reason {chr(97 + i)}") for i in range(26)])
    assert (len(many.groups), many.more, many.pairs) == (MAX_GROUPS, 26 - MAX_GROUPS, 26)


def test_witnesses_are_read_per_axis_value(clean: Run) -> None:
    shown = trust(clean)
    calls = shown.columns.index("compiled calls")
    chunks = shown.columns.index("chunks of the longest-split prompt")
    rows = {(r.axis, r.value): r for r in shown.witnesses}
    assert rows["compile", "eager"].ranges[calls] == "0"
    assert rows["compile", "compiled"].ranges[calls] != "0"
    assert rows["chunk", "whole"].ranges[chunks] == "1"
    assert rows["chunk", "chunked"].ranges[chunks] == "1 to 5"
    assert shown.samples
    assert all(len(s.pids) == 2 and s.executor == "processes" for s in shown.samples)


def test_a_system_without_a_witness_breaks_nothing(clean: Run) -> None:
    blind = {k: replace(e, witness={"other": 1}) for k, e in clean.executions.items()}
    shown = trust(replace(clean, executions=blind))
    assert (shown.witnesses, shown.samples, shown.processes) == ((), (), 0)


def test_power_is_the_least_and_the_median_multiple(clean: Run) -> None:
    movements = (
        Measurement(metric="m", value=0.5, bound=0.1),
        Measurement(metric="n", value=2.0, bound=0.1),
    )
    powers = (replace(clean.powers[0], movements=movements, blind=True),)
    (row,) = trust(replace(clean, powers=powers)).powers
    assert (row.least, row.median, row.blind, row.cases) == ("5 times", "20 times", 1, 1)


def test_hazards_are_listed_once(clean: Run) -> None:
    derived = {"hazards": ["rank 0: write of ids unordered with read"], "pids": [1]}
    racy = {k: replace(e, witness={"derived": derived}) for k, e in clean.executions.items()}
    assert trust(replace(clean, executions=racy)).hazards == tuple(derived["hazards"])  # type: ignore[arg-type]


def test_coverage_counts_cases_per_boundary_and_checkpoint(clean: Run) -> None:
    shown = coverage(clean)
    rows = {row.name: row.cases for row in shown.boundaries}
    assert rows["one token"] == (1, 1, 1, 1)
    assert rows["block edge"] == (2, 2, 2, 2)
    assert shown.checkpoints[0].lengths == "1 to 300, median 129; 1 over 256"
    lag = next(s for s in shown.settings if s.value == "lag(copy@last)")
    assert lag.pairs == 12


def test_a_kill_matrix_in_the_folder_is_shown(tmp_path: Path) -> None:
    folder = clean_run(num_cases=1).write(tmp_path)
    assert build_page(load_run(folder)).kills is None
    (folder / KILL_MATRIX).write_text(
        '{"faults": [{"name": "a", "killed": true, "by": {"FAIL": 3, "exact": 2, "kernel": 1}},'
        ' {"name": "<b>", "killed": false, "by": {"PASS": 9}}], "false_alarms": 1}'
    )
    run = load_run(folder)
    found = build_page(run).kills
    assert found is not None
    assert found.checks == ("exact", "kernel")
    assert [(row.name, row.killed, row.counts) for row in found.rows] == [
        ("a", True, (2, 1)),
        ("<b>", False, (0, 0)),
    ]
    assert (found.killed, found.false_alarms) == (1, 1)
    text = render_text(run)
    assert "1 of 2 planted faults found by ordinary cases and checks; 1 false alarm on" in text
    assert "&lt;b&gt;" in text


def test_a_flagged_control_is_shown_as_a_false_alarm(tmp_path: Path) -> None:
    folder = clean_run(num_cases=1).write(tmp_path)
    (folder / KILL_MATRIX).write_text(
        '{"faults": [], "controls": [{"name": "<c>", "flagged": true, "by": {"exact": 2},'
        ' "pairs": 7}, {"name": "d", "flagged": false, "by": {}, "pairs": 5}], "false_alarms": 2}'
    )
    run = load_run(folder)
    found = build_page(run).kills
    assert found is not None
    assert (found.flagged, found.control_pairs, found.false_alarms) == (1, 12, 2)
    text = render_text(run)
    assert "1 of 2 controls was flagged, in 12 comparisons" in text
    assert "✕ YES" in text.partition("&lt;c&gt;")[2].partition("</tr>")[0]
    assert "planted faults found" not in text
    assert "Would a simpler rule have done?" not in text


def test_rules_of_other_projects_are_shown(tmp_path: Path) -> None:
    folder = clean_run(num_cases=1).write(tmp_path)
    (folder / KILL_MATRIX).write_text(
        '{"faults": [{"name": "f", "killed": true, "by": {"exact": 1},'
        '"rules": {"<b>close</b>": 41}},'
        '{"name": "g", "killed": true, "by": {"exact": 2}}], "false_alarms": 0,'
        '"rules": [{"dtype": "bfloat16", "rule": "<b>close</b>", "false_alarms": 12, "of": 3400,'
        '"killed": 5, "of_faults": 61}]}'
    )
    run = load_run(folder)
    kills = build_page(run).kills
    assert kills is not None
    assert kills.rule_names == ("<b>close</b>",)
    assert [(r.counts, r.called) for r in kills.rows] == [((1,), (41,)), ((2,), (0,))]
    (row,) = kills.rules
    assert (row.false_alarms, row.of, row.killed, row.of_faults) == (12, 3400, 5, 61)
    text = render_text(run)
    assert "Would a simpler rule have done?" in text
    assert text.count("&lt;b&gt;close&lt;/b&gt;") == 2, "a column and a row of its own"
    assert '<td class="num">41</td>' in text


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "7", '{"faults": 3}', '{"faults": [1]}', '{"controls": 1}']
)
def test_a_kill_matrix_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    folder = clean_run(num_cases=1).write(tmp_path)
    (folder / KILL_MATRIX).write_text(content)
    assert build_page(load_run(folder)).kills is None

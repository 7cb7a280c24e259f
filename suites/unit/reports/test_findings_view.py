"""Findings: order, words, truth tables and the error along a prompt.

Passes wrongly if no finding's worst value was NaN, which a plain comparison calls no worse than
another. Ruled out by suites/meta/test_suites_can_fail.py: `nan-is-no-trouble`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.record import NO_LAYER, FindingRecord, Outcome
from reports.html.token_drawing import MAX_COLUMNS, draw_tokens
from reports.load import Run, load_run
from reports.view.findings import fails_when, findings, unexplained
from suites.unit.reports.fixtures import failing_run


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(failing_run(num_cases=2).write(tmp_path_factory.mktemp("run")))


def changed(finding: FindingRecord, finding_id: str, **changes: object) -> FindingRecord:
    return replace(finding, finding_id=finding_id, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (
            (("chunk=chunked", "compile=compiled"),),
            "Fails when chunk=chunked AND compile=compiled.",
        ),
        ((("async=async",), ("pp=2",)), "Fails when async=async, or when pp=2."),
        (((),), "Fails whichever way it is run: the baseline fails too."),
        ((), "The switches that cause it are not known."),
    ],
)
def test_minimal_failing_sets_in_words(sets: tuple[tuple[str, ...], ...], words: str) -> None:
    assert fails_when(sets) == words


def test_worst_first_and_nan_worst_of_all(failing: Run) -> None:
    one = failing.findings[0]
    run = replace(
        failing,
        findings=(
            changed(one, "vacuous", outcome=Outcome.VACUOUS, worst=math.inf),
            changed(one, "small", worst=2e-5),
            changed(one, "large", worst=3.0),
            changed(one, "zero-bound", worst=4.0, bound=0.0),
            changed(one, "nan", worst=math.nan),
        ),
    )
    order = [f.finding_id for f in findings(run)]
    assert order == ["nan", "zero-bound", "large", "small", "vacuous"]


def test_the_truth_table_marks_the_failing_set_only_where_it_is_whole(failing: Run) -> None:
    view = findings(failing)[0]
    assert len(view.truth) == 16
    for line in view.truth:
        marked = {axis for axis, on in zip(view.axes, line.marked, strict=True) if on}
        assert marked == ({"compile", "chunk"} if line.look.word == "FAIL" else set())


def test_the_view_names_where_it_starts_and_what_hides_it(failing: Run) -> None:
    view = findings(failing)[0]
    assert "layer 1 of 4, at token 128" in view.divergence
    assert [h.value for h in view.hidden.by] == ["inputs=ring", "stream_policy=immediate"]
    assert view.conditions.requires[0] == "paced(2)"
    assert view.worst_where == "in the shrunk case"
    assert view.measured_case in {pair.case_id for pair in failing.pairs}
    assert view.order.startswith("An interaction of 2 switches")
    assert view.share == "113,000 times the bound"
    assert {"relative_l2", "oracle_ratio"} <= {m.metric for m in view.measures}


def test_anchors_are_unique_and_plain(failing: Run) -> None:
    one = failing.findings[0]
    run = replace(failing, findings=(changed(one, "a b"), changed(one, "a<b"), changed(one, "a b")))
    anchors = [f.anchor for f in findings(run)]
    assert len(set(anchors)) == 3
    assert all(a.replace("-", "").isalnum() for a in anchors)


def test_failures_without_a_finding_are_not_lost(failing: Run) -> None:
    assert not unexplained(failing)
    left = unexplained(replace(failing, findings=()))
    assert len(left) == sum(p.outcome is Outcome.FAIL for p in failing.pairs) > 0


def test_a_long_prompt_is_drawn_in_few_columns_that_keep_the_worst() -> None:
    errors = [1e-7] * 8_192
    errors[5_000] = 0.9
    shape = draw_tokens(errors, [2_048, 4_096, 6_144], 5_000)
    assert shape is not None
    assert len(shape.columns) <= MAX_COLUMNS
    tallest = max(shape.columns, key=lambda c: c.height)
    assert "9.00e-01" in tallest.title
    assert [e.label for e in shape.edges] == ["2,048", "4,096", "6,144"]
    assert "the largest at 5,000" in shape.alternative


def test_tokens_that_agree_or_break_are_told_apart() -> None:
    shape = draw_tokens([0.0, 1e-3, math.nan, math.inf], [], None)
    assert shape is not None
    assert [c.css for c in shape.columns] == ["zero", "bar", "broken", "broken"]
    assert "3 different" in shape.alternative
    assert draw_tokens([], [], None) is None


def test_a_system_that_tells_nothing_of_its_layers_has_none_named(failing: Run) -> None:
    first = failing.findings[0]
    assert first.first_divergence is not None
    told = replace(first.first_divergence, layer=NO_LAYER)
    bare = replace(first, first_divergence=told, token_errors=())
    (view, *_) = findings(replace(failing, findings=(bare,)))
    assert "in the answer (the system tells nothing of its layers), at token 128" in view.divergence
    assert "layer -1" not in view.divergence
    assert "before agrees" not in view.divergence

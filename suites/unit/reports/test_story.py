"""A scenario's figures: counted in the run, on the devices and tasks of the finding that leads.

Passes wrongly if every comparison of the run was on the leading finding's own device and task.
Ruled out by suites/meta/test_suites_can_fail.py: `a-story-counts-every-comparison`.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.record import Comparison, Outcome, StoryInfo
from reports.html.render import render_text
from reports.load import Run, load_run
from reports.terminal import print_summary
from reports.view.page import build_page
from suites.unit.reports.fixtures import HOSTILE, clean_run, failing_run

INFO = StoryInfo(
    name="a-story",
    title="A title",
    user="A user.",
    suites="What suites saw.",
    cause="A cause.",
    lesson="A lesson.",
    sources=("vllm#48831",),
)


def telling(run: Run, info: StoryInfo = INFO) -> Run:
    return replace(run, manifest=replace(run.manifest, story=info))


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return telling(load_run(failing_run(num_cases=3).write(tmp_path_factory.mktemp("run"))))


def terminal(run: Run) -> str:
    out = io.StringIO()
    print_summary(run, Console(file=out, width=200))
    return out.getvalue()


def test_a_run_without_a_story_tells_none(failing: Run) -> None:
    run = replace(failing, manifest=replace(failing.manifest, story=None))
    assert build_page(run).story is None
    assert 'id="story"' not in render_text(run)
    assert "What each corner does" not in terminal(run)


def test_corners_are_counted(failing: Run) -> None:
    story = build_page(failing).story
    assert story is not None
    assert story.finding is not None
    lead = next(f for f in failing.findings if f.finding_id == story.finding.finding_id)
    own = [p for p in failing.pairs if p.pair_id in lead.pairs]
    there = [
        p
        for p in failing.pairs
        if p.settings in [o.settings for o in own]
        and p.task in {o.task for o in own}
        and p.outcome is not Outcome.INAPPLICABLE
    ]
    together = ("compile=compiled", "chunk=chunked")
    for corner in story.corners:
        mine = [
            p
            for p in there
            if (p.comparison is Comparison.ORACLE and not corner.values)
            or (
                p.comparison is Comparison.BASELINE
                and {f"{a.name}={p.cell_b[a.name]}" for a in failing.manifest.axes}
                == {*corner.values}
                | {
                    f"{a.name}={a.baseline}"
                    for a in failing.manifest.axes
                    if a.name not in {v.partition("=")[0] for v in corner.values}
                }
            )
        ]
        assert corner.compared == len(mine), corner.name
        assert corner.failed == sum(p.outcome is Outcome.FAIL for p in mine), corner.name
        assert bool(corner.failed) == (set(together) <= set(corner.values)), corner.name
    assert story.overlooked.startswith("Each switch alone passes")


def test_a_race_that_shows_in_no_answer_is_no_failure_of_a_suite(failing: Run) -> None:
    """The check of buffer accesses fails under one switch, where the answers agree."""
    raced = tuple(
        replace(p, outcome=Outcome.FAIL, reason="side B (x): happens-before: rank 0: buffer 'b'")
        if p.outcome is Outcome.PASS
        and p.comparison is Comparison.BASELINE
        and (p.cell_b["compile"], p.cell_b["chunk"]) == ("eager", "chunked")
        else p
        for p in failing.pairs
    )
    story = build_page(replace(failing, pairs=raced)).story
    assert story is not None
    (alone,) = (c for c in story.corners if c.values == ("chunk=chunked",))
    assert (alone.failed, alone.raced) == (0, alone.compared)
    assert "only the check of buffer accesses fails" in alone.result
    assert story.overlooked.startswith("Each switch alone gives right answers")


def test_both_writers_tell_all_of_it(failing: Run) -> None:
    page = build_page(failing)
    assert page.story is not None
    assert page.story.finding is not None
    for text in (terminal(failing), render_text(failing)):
        for words in (INFO.title, INFO.user, INFO.suites, INFO.cause, INFO.lesson, *INFO.sources):
            assert words in text
        assert page.story.finding.reproduce in text
        assert page.setup.command in text
        assert "nothing switched on, against float64" in text


def test_a_baseline_that_is_wrong_is_told_by_the_reference_alone(tmp_path: Path) -> None:
    run = telling(load_run(clean_run(num_cases=2).write(tmp_path)))
    pairs = tuple(
        replace(p, outcome=Outcome.FAIL) if p.comparison is Comparison.ORACLE else p
        for p in run.pairs
    )
    story = build_page(replace(run, pairs=pairs)).story
    assert story is not None
    assert (
        story.overlooked == "All ways of running agree with each other: only the reference tells."
    )


def test_a_story_that_was_not_seen_says_so(tmp_path: Path) -> None:
    run = telling(load_run(clean_run(num_cases=1).write(tmp_path)))
    assert "the story was not seen in this run" in terminal(run)
    assert "The story was not seen in this run" in render_text(run)
    story = build_page(run).story
    assert story is not None
    assert story.overlooked == ""


def test_words_cannot_act(failing: Run) -> None:
    info = StoryInfo(
        **{
            name: HOSTILE[i % len(HOSTILE)]
            for i, name in enumerate(("name", "title", "user", "suites", "cause", "lesson"))
        },
        sources=HOSTILE,
    )
    page = render_text(telling(failing, info))
    assert "<script>window.hit" not in page
    assert "<img src=x" not in page
    assert "\x1b[31m" not in terminal(telling(failing, info))

"""`parity scenario`: stories are listed, told with their run's figures, and not told unseen.

Passes wrongly if a story was told because it was asked for, seen or not. Ruled out by
`test_a_story_that_did_not_happen_is_not_told`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import scenario as command
from harness.record import Comparison, Outcome, read_manifest
from harness.scenarios import SCENARIOS
from reports.load import load_run
from suites.contract.command import parity

STORY = "two-stages"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARITY_HOME", str(tmp_path))
    return tmp_path / "runs"


def test_stories_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    answer = parity(capsys, "scenario")
    assert answer.code == 0
    told = answer.out.splitlines()
    assert [line.partition(":")[0] for line in told] == list(SCENARIOS)
    assert SCENARIOS[STORY].title in answer.out


def test_another_name_is_refused_with_the_valid_ones(capsys: pytest.CaptureFixture[str]) -> None:
    answer = parity(capsys, "scenario", "no-such-story")
    assert answer.code == 2
    assert f"unknown scenario 'no-such-story'; valid: {', '.join(SCENARIOS)}" in answer.told


@pytest.mark.nightly
def test_a_story_is_told_from_its_run(capfd: pytest.CaptureFixture[str], runs: Path) -> None:
    answer = parity(capfd, "scenario", STORY)
    assert answer.code == 0, answer.out
    (folder,) = runs.iterdir()
    run, scenario = load_run(folder), SCENARIOS[STORY]
    assert run.manifest.command == ("parity", "scenario", STORY, "--seed", "0")
    assert run.manifest.plants == scenario.plants
    page = (folder / "report.html").read_text()
    for text in (answer.told, page):
        assert scenario.title in text
        assert scenario.cause in text
    assert "Each switch alone passes, and so does the plainest way" in answer.told
    together = [
        p
        for p in run.pairs
        if p.comparison is Comparison.BASELINE
        and (p.cell_b["chunk"], p.cell_b["pp"]) == ("chunked", "2")
        and p.outcome is Outcome.FAIL
    ]
    assert together, "the fault was not seen"
    assert "chunk=chunked AND pp=2: " in answer.told
    assert any(f"parity replay {found.finding_id}" in answer.out for found in run.findings)


def test_a_story_that_did_not_happen_is_not_told(
    capfd: pytest.CaptureFixture[str], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = replace(SCENARIOS[STORY], plants=())
    monkeypatch.setattr(command, "SCENARIOS", {STORY: bare})
    answer = parity(capfd, "scenario", STORY)
    assert answer.code == 3, "nothing was planted, so nothing was proved"
    (folder,) = runs.iterdir()
    assert read_manifest(folder).story is None

"""Stories: complete, of faults and switches that exist, and without a figure of their own.

Passes wrongly if a story could leave out the switches that its faults need, or its faults no longer
showed. Ruled out by suites/meta/test_suites_can_fail.py: `stories-without-switches` and
suites/contract/test_scenarios.py::test_a_story_is_told_from_its_run.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.axes import ALL_AXES
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.faults import FAULTS
from harness.scenarios import SCENARIOS
from harness.scenarios.base import Scenario, read_scenario

SOURCE = re.compile(r"[\w.-]+#\d+")
LISTED = [1, 2, 4, 5, 6, 7, 8, 9, 11]
"""Numbers of the user stories; the list has gaps."""


def test_every_story_of_the_list_is_there_in_its_order() -> None:
    assert [scenario.number for scenario in SCENARIOS.values()] == LISTED


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_a_story_is_complete(scenario: Scenario) -> None:
    assert scenario.plants
    assert set(scenario.plants) <= set(FAULTS)
    assert set(scenario.axes) <= set(ALL_AXES)
    assert scenario.checkpoint in CHECKPOINTS
    assert scenario.sources
    assert all(SOURCE.fullmatch(source) for source in scenario.sources)
    for words in (
        scenario.title,
        scenario.user,
        scenario.suites,
        scenario.cause,
        scenario.lesson,
    ):
        assert words == " ".join(words.split())
        assert not re.search(r"\d", words.replace("float64", "")), "figures come from the run"


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_a_story_has_the_switches_that_its_faults_need(scenario: Scenario) -> None:
    for plant in scenario.plants:
        needed = [{value.partition("=")[0] for value in s} for s in FAULTS[plant].exposed_by]
        assert any(names <= set(scenario.axes) for names in needed), plant
        assert set(scenario.sources) & set(FAULTS[plant].sources), plant


@pytest.mark.parametrize(
    ("text", "told"),
    [("colour = 1", "unknown colour; valid: axes"), ("number = 1", "missing .* 'title'")],
)
def test_a_bad_file_is_told_as_it_is(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=told):
        read_scenario(path)

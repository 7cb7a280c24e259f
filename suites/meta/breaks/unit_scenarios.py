"""Breaks of `suites/unit/scenarios`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="stories-without-switches",
        suite="suites/unit/scenarios/test_stories.py",
        red="test_a_story_has_the_switches_that_its_faults_need",
        at="harness.scenarios.base:read_scenario",
        instead=instead.result(lambda scenario: replace(scenario, axes=())),
    ),
)

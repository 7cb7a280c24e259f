"""The user stories that a run can tell, each a TOML file of words beside the fault that it plants.

Every figure that is told comes out of the run: a story holds none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.scenarios.base import Scenario, read_scenario

STORIES = Path(__file__).parent / "stories"

SCENARIOS: Mapping[str, Scenario] = {
    found.name: found
    for found in sorted(map(read_scenario, STORIES.glob("*.toml")), key=lambda s: s.number)
}
"""By name, in the order of the list that they come from."""

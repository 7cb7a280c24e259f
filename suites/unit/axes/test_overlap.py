"""Which settings can promise that steps overlap, told before anything runs.

Passes wrongly if every setting were taken to promise that steps overlap. Ruled out by
suites/meta/test_suites_can_fail.py: `async-is-always-promised`.
"""

from __future__ import annotations

import pytest

from harness.axes import Cell
from harness.axes.overlap import cannot_overlap


@pytest.mark.parametrize(
    ("cell", "settings", "reason"),
    [
        ("async=async", {}, None),
        ("async=async", {"inputs": "fenced"}, None),
        ("async=async,pp=2", {"inputs": "fenced"}, "one fenced staging buffer"),
        ("async=async,pp=2", {"inputs": "ring"}, None),
        ("async=async", {"stream_policy": "immediate"}, "run as they are submitted"),
        ("async=async", {"stream_policy": "paced(2)"}, "may keep up"),
        ("async=async", {"stream_policy": "drawn(0,1)"}, "depends on the draw"),
        ("async=async", {"stream_policy": "lag(compute@last)"}, "at submission"),
        ("async=async", {"stream_policy": "lag(copy@last)"}, None),
        ("async=sync", {"stream_policy": "immediate"}, None),
    ],
)
def test_what_settings_promise(cell: str, settings: dict[str, str], reason: str | None) -> None:
    found = cannot_overlap(Cell.parse(cell), settings)
    assert (found is None) if reason is None else (reason in str(found))

"""Breaks of `suites/unit/layers`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="rotation-turns-backwards",
        suite="suites/unit/layers/test_layers.py",
        red="test_rotation_turns_each_pair_by_position_times_frequency",
        at="engine.layers.rotary:rotate",
        instead=lambda right: lambda x, cos, sin: right(x, cos, -sin),
    ),
)

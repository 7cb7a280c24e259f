"""Axes: what may be run differently, how close results stay, and the proof that it happened."""

from __future__ import annotations

from harness.axes.base import Axis, AxisError, Plan
from harness.axes.evidence import Evidence, EvidenceError
from harness.axes.lattice import (
    AXES,
    Cell,
    Edge,
    admitted,
    baseline,
    differing,
    edges,
    face,
    inapplicable,
    lattice,
    select,
    tier_between,
)
from harness.axes.settings import setting_witnessed

__all__ = [
    "AXES",
    "Axis",
    "AxisError",
    "Cell",
    "Edge",
    "Evidence",
    "EvidenceError",
    "Plan",
    "admitted",
    "baseline",
    "differing",
    "edges",
    "face",
    "inapplicable",
    "lattice",
    "select",
    "setting_witnessed",
    "tier_between",
]

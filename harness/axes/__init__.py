"""Axes: what may be run differently, how close results stay, and the proof that it happened."""

from __future__ import annotations

from harness.axes.base import Axis, AxisError, Plan
from harness.axes.covering import Coverage, coverage, covering, leave_one_off
from harness.axes.evidence import Evidence, EvidenceError
from harness.axes.lattice import (
    ALL_AXES,
    AXES,
    SECONDARY,
    Cell,
    Edge,
    admitted,
    baseline,
    chosen_cells,
    differing,
    edges,
    face,
    idle,
    inapplicable,
    lattice,
    plan_key,
    select,
    tier_between,
)
from harness.axes.settings import inline, setting_witnessed
from harness.axes.startable import Startable
from harness.axes.tensor_parallel import num_ranks

__all__ = [
    "ALL_AXES",
    "AXES",
    "SECONDARY",
    "Axis",
    "AxisError",
    "Cell",
    "Coverage",
    "Edge",
    "Evidence",
    "EvidenceError",
    "Plan",
    "Startable",
    "admitted",
    "baseline",
    "chosen_cells",
    "coverage",
    "covering",
    "differing",
    "edges",
    "face",
    "idle",
    "inapplicable",
    "inline",
    "lattice",
    "leave_one_off",
    "num_ranks",
    "plan_key",
    "select",
    "setting_witnessed",
    "tier_between",
]

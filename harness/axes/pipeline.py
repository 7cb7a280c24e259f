"""Axis `pp`: all layers on one rank against layers split over two pipeline stages."""

from __future__ import annotations

from harness.axes.base import Axis, CellLike
from harness.axes.evidence import Evidence
from harness.record import Tier


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    active, expected = len(evidence.active_ranks), int(cell["pp"])
    if active == expected:
        return None
    return f"{active} of {len(evidence.ranks)} ranks executed operations, expected {expected}"


PIPELINE = Axis(
    name="pp",
    values=("1", "2"),
    baseline="1",
    tier=Tier.EXACT,
    meaning=(
        "Pipeline stages the layers are split over. Where a layer runs changes no arithmetic, so "
        "not a bit may change."
    ),
    witness=_witness,
)

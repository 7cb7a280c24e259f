"""Axis `pp`: all layers on one rank against layers split over two pipeline stages."""

from __future__ import annotations

from harness.axes.base import Axis, CellLike
from harness.axes.evidence import Evidence
from harness.axes.tensor_parallel import num_ranks, tensor_ranks
from harness.record import Tier


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    active, expected = len(evidence.active_ranks), num_ranks(cell)
    if active != expected:
        return f"{active} of {len(evidence.ranks)} ranks executed operations, expected {expected}"
    # Ranks that sum with each other are one stage: two tensor ranks are not two stages.
    each, wanted = evidence.summands_each, tensor_ranks(cell)
    if each == wanted:
        return None
    return (
        f"{active} active ranks whose sums have {each} summands are {active // each} stages, "
        f"expected {int(cell['pp'])} of {wanted} tensor ranks"
    )


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

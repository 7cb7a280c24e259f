"""Axis `compile`: eager kernels against torch.compile's."""

from __future__ import annotations

from harness.axes.base import Axis, CellLike
from harness.axes.evidence import Evidence
from harness.record import Tier


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    calls = evidence.counts("compiled_calls")
    if not calls:
        return "no rank executed anything"
    if cell["compile"] == "eager":
        if any(calls):
            return f"{sum(calls)} calls ran inside a compiled artefact, expected none"
        return None
    # One call in the first step would also leave a count above 0; a compiler that gives up later
    # (its recompile limit) runs the remaining steps eagerly and says nothing.
    steps = evidence.counts("steps")
    if cell.get("graph", "off") != "off":
        # On a GPU a recording of compiled calls is replayed without entering them again.
        calls = [max(pair) for pair in zip(calls, evidence.counts("replays"), strict=True)]
    for rank, (called, stepped) in enumerate(zip(calls, steps, strict=True)):
        if called < max(1, stepped):
            return (
                f"active rank {rank} ran {called} compiled calls in {stepped} steps, expected at "
                f"least one a step"
            )
    return None


COMPILE = Axis(
    name="compile",
    values=("eager", "compiled"),
    baseline="eager",
    tier=Tier.KERNEL,
    meaning="Eager kernels, or torch.compile's fused ones: the same mathematics, other roundings.",
    witness=_witness,
)

"""Secondary axis `attention`: whose function attends."""

from __future__ import annotations

from harness.axes.base import Axis, CellLike
from harness.axes.evidence import Evidence
from harness.record import Tier


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    wanted, steps = cell.get("attention", "sdpa"), evidence.counts("steps")
    if not steps:
        return "no rank executed anything"
    every = evidence.tallies("attention_calls")
    for rank, (stepped, calls) in enumerate(zip(steps, every, strict=True)):
        others = ", ".join(f"{n} {name}" for name, n in calls.items() if name != wanted and n)
        if others:
            return f"active rank {rank} attended by {others}, expected {wanted} only"
        if calls.get(wanted, 0) < max(1, stepped):
            return (
                f"active rank {rank} called {wanted} {calls.get(wanted, 0)} times in {stepped} "
                f"steps, expected at least once a step"
            )
    return None


ATTENTION = Axis(
    name="attention",
    values=("sdpa", "naive", "triton"),
    baseline="sdpa",
    tier=Tier.KERNEL,
    meaning=(
        "Whose function attends: PyTorch's, the specification written out, or a Triton kernel "
        "(on a GPU; on the CPU in Triton's interpreter, which is slow)."
    ),
    witness=_witness,
    flag="attention",
)

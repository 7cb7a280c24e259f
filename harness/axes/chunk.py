"""Axis `chunk`: a prompt prefilled whole against one split over several steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.axes.base import Axis, CellLike, Plan, attested_batch_invariant
from harness.axes.evidence import Evidence
from harness.record import Tier


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    pieces = evidence.max_chunks
    if pieces == 0:
        return "no prompt was executed"
    if cell["chunk"] == "whole":
        return None if pieces == 1 else f"a prompt ran in {pieces} pieces, expected every one whole"
    return None if pieces > 1 else "every prompt ran whole, expected at least one in several pieces"


def _reach(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:  # noqa: ARG001
    pieces = Counter(str(entry[0]) for step in plan for entry in step)
    if any(count > 1 for count in pieces.values()):
        return None
    return f"the plan splits no prompt (longest has {max(lengths, default=0)} tokens)"


CHUNK = Axis(
    name="chunk",
    values=("whole", "chunked"),
    baseline="whole",
    tier=Tier.REORDERED,
    meaning=(
        "A prompt prefilled in one step, or in pieces: the same kernels on other shapes, so sums "
        "may be reordered (exact when both sides attest batch_invariant=on)."
    ),
    witness=_witness,
    reach=_reach,
    exact_when=attested_batch_invariant,
    replans=True,
)

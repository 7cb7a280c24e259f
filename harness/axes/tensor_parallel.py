"""Secondary axis `tp`: every layer on one rank of a stage, or divided over two."""

from __future__ import annotations

from harness.axes.base import Axis, CellLike
from harness.axes.evidence import Evidence
from harness.record import Tier


def tensor_ranks(cell: CellLike) -> int:
    """Tensor ranks of each stage of a cell; 1 when the cell does not name them."""
    return int(cell.get("tp", "1"))


def num_ranks(cell: CellLike) -> int:
    """Ranks of a cell: its stages times the tensor ranks of each."""
    return int(cell.get("pp", "1")) * tensor_ranks(cell)


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    expected, sums = tensor_ranks(cell), evidence.counts("reductions")
    if not sums:
        return "no rank executed anything"
    if expected == 1:
        return f"{sum(sums)} sums over tensor ranks, expected none" if any(sums) else None
    if len(sums) % expected:
        return f"{len(sums)} ranks executed operations, expected {expected} in each stage"
    # A rank that summed once and went on with its own summand would also leave a count above 0.
    for rank, (summed, stepped) in enumerate(zip(sums, evidence.counts("steps"), strict=True)):
        if summed < max(1, stepped):
            return (
                f"active rank {rank} computed {summed} sums over tensor ranks in {stepped} steps, "
                f"expected at least one a step"
            )
    each = evidence.summands_each
    return None if each == expected else f"each sum had {each} summands, expected {expected}"


TENSOR_PARALLEL = Axis(
    name="tp",
    values=("1", "2"),
    baseline="1",
    tier=Tier.REORDERED,
    meaning=(
        "Tensor ranks that a stage's heads and feed-forward columns are divided over: the same "
        "products in parts, each layer's sums in another order."
    ),
    witness=_witness,
)

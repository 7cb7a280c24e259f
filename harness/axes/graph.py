"""Secondary axis `graph`: compiled callables called as they are, or replayed as recordings.

A recording is made for a number of rows, its bucket, and a step is padded to one. `fitted` has a
bucket for every number of rows, so no row is added that a step without recordings would not have;
`coarse` has few, so most steps are padded.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.axes.base import Axis, CellLike
from harness.axes.evidence import Evidence, Json
from harness.record import Tier

LEAST = {"off": 2, "on": 8}
"""Rows of the smallest step, by the attested flag `batch_invariant`: fewer take other kernels."""
COARSEST = 8
"""Rows of the smallest coarse bucket."""


def coarse_buckets(most: int) -> tuple[int, ...]:
    """8, 16, 32, ...: doubled up to the first of at least `most` rows."""
    found = [COARSEST]
    while found[-1] < most:
        found.append(2 * found[-1])
    return tuple(found)


def fitted_buckets(most: int) -> tuple[int, ...]:
    """A bucket for every number of rows from the least up to `most`."""
    return tuple(range(LEAST["off"], max(most, LEAST["on"]) + 1))


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    value, replays = cell.get("graph", "off"), evidence.counts("replays")
    if not replays:
        return "no rank executed anything"
    if value == "off":
        return f"{sum(replays)} recordings were replayed, expected none" if any(replays) else None
    for rank, (replayed, stepped) in enumerate(zip(replays, evidence.counts("steps"), strict=True)):
        if replayed < max(1, stepped):
            return (
                f"active rank {rank} replayed {replayed} recordings in {stepped} steps, expected "
                f"one a step"
            )
    return _fitted(evidence) if value == "fitted" else _coarse(evidence)


def _coarse(evidence: Evidence) -> str | None:
    wrong = sorted(
        {int(b) for rank in evidence.active_ranks for b in rank.get("buckets") or ()}
        - set(coarse_buckets(1 << 30))
    )
    return f"recordings of {wrong} rows were replayed, expected 8, 16, 32, ..." if wrong else None


def _fitted(evidence: Evidence) -> str | None:
    least = LEAST[str((evidence.value("flags") or {}).get("batch_invariant", "off"))]
    # Only a step of fewer rows than the least may have been padded, and to the least.
    allowed = sum(least - 1 for rows in evidence.value("padded_tokens") if int(rows) == least)
    added = max(evidence.counts("padding_rows"))
    if added <= allowed:
        return None
    return f"steps were padded by {added} rows, expected at most {allowed}"


def same_rows(a: Mapping[str, Json], b: Mapping[str, Json]) -> bool:
    """Whether two runs attest the same number of rows for every step."""
    mine, other = (list(w.get("padded_tokens") or ()) for w in (a, b))
    return bool(mine) and mine == other


GRAPH = Axis(
    name="graph",
    values=("off", "fitted", "coarse"),
    baseline="off",
    tier=Tier.KERNEL,
    meaning=(
        "Compiled callables as they are, or recorded and replayed on persistent memory, each step "
        "padded to a recording's rows (exact when both sides attest the same rows; needs "
        "compile=compiled)."
    ),
    witness=_witness,
    exact_when=same_rows,
    beside={"compile": "compiled"},
)

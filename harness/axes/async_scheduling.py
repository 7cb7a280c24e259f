"""Axis `async`: whether the scheduler submits a step before the one before it has been fetched."""

from __future__ import annotations

from collections.abc import Sequence

from harness.axes.base import Axis, CellLike, Plan
from harness.axes.evidence import Evidence
from harness.record import Tier


def pipeline_size(cell: CellLike) -> int:
    """Pipeline stages of a cell; 1 when the lattice has no such axis."""
    return int(cell.get("pp", "1"))


def output_steps(plan: Plan) -> list[int]:
    """Indices of the steps in which some prompt's last token runs."""
    return [
        index
        for index, step in enumerate(plan)
        if any(int(start) + int(count) == int(total) for _, start, count, total in step)
    ]


def _witness(cell: CellLike, evidence: Evidence) -> str | None:
    stages = pipeline_size(cell)
    seen = evidence.lookahead
    # Every stage keeps one batch in flight, so PP=2 looks one step ahead even when scheduling is
    # synchronous; async keeps one more than sync.
    if cell["async"] == "sync":
        if seen <= stages - 1:
            return None
        return (
            f"{seen} steps were submitted behind an unfinished output step, expected at most "
            f"{stages - 1} (pp={stages})"
        )
    if seen >= stages:
        return None
    return (
        f"at most {seen} steps were submitted behind an unfinished output step, expected {stages} "
        f"(pp={stages})"
    )


def _reach(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:  # noqa: ARG001
    stages, last = pipeline_size(cell), len(plan) - 1
    first = min(output_steps(plan), default=None)
    if first is not None and first + stages <= last:
        return None
    return (
        f"the plan has {len(plan)} steps and first finishes a prompt in step {first}; overlap "
        f"needs {stages} more behind it (pp={stages})"
    )


ASYNC = Axis(
    name="async",
    values=("sync", "async"),
    baseline="sync",
    tier=Tier.EXACT,
    meaning=(
        "When steps are submitted: after the result before them was fetched, or one step earlier. "
        "The same work in the same order, so not a bit may change."
    ),
    witness=_witness,
    reach=_reach,
)

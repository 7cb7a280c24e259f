"""Axis `async`: whether the scheduler submits a step before the one before it has been fetched."""

from __future__ import annotations

from collections.abc import Sequence

from harness.axes.base import Axis, CellLike, Plan
from harness.axes.evidence import Evidence
from harness.axes.memory import block_size, blocks, small_pool
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


def _reach(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:
    stages, last = pipeline_size(cell), len(plan) - 1
    outputs = output_steps(plan)
    ahead = [first for first in outputs if first + stages <= last]
    if not ahead:
        return (
            f"the plan has {len(plan)} {'step' if len(plan) == 1 else 'steps'} and first finishes "
            f"a prompt in step {min(outputs, default=None)}; overlap needs {stages} "
            f"more behind it (pp={stages})"
        )
    if cell.get("kv_pool", "ample") == "ample":
        return None
    size = block_size(cell)
    if cell.get("prefix_cache") == "on":
        # Blank blocks are handed out before those that hold a prefix, so the step behind one that
        # leaves a part of a block waits until it has it.
        ahead = [first for first in ahead if not _leaves_blank(plan[first : first + stages], size)]
        if not ahead:
            return (
                f"of any {stages + 1} steps that could overlap, one leaves a block in part, which "
                "the small pool of a prefix cache hands out next"
            )
    there = small_pool(lengths, size)
    least = min(_held(cell, plan, first, first + stages) for first in ahead)
    if least <= there:
        return None
    return (
        f"the small pool has {there} blocks, and {stages + 1} steps of which the first finishes a "
        f"prompt hold {least} at the least: they wait for each other's"
    )


def _leaves_blank(plan: Plan, size: int) -> bool:
    """Whether a prompt ends in these steps, and not at the end of a block."""
    ends = (
        int(total)
        for step in plan
        for _, start, count, total in step
        if int(start) + int(count) == int(total)
    )
    return any(total % size for total in ends)


def _held(cell: CellLike, plan: Plan, first: int, last: int) -> int:
    """Blocks of all prompts underway in steps `first` to `last`, none of them shared."""
    held: dict[str, int] = {}
    for index, step in enumerate(plan[: last + 1]):
        for name, start, count, total in step:
            end = int(start) + int(count)
            held[str(name)] = max(held.get(str(name), 0), blocks(end, block_size(cell)))
            if end == int(total) and index < first:
                del held[str(name)]
    return sum(held.values())


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

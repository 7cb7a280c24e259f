"""Compiled code that is not the code it was compiled from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults.base import FaultClass, Undo, exposed, planted
from harness.faults.seams import both, is_async, is_compiled, nothing, on_blocks

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.execution.base import Frame
    from engine.plan import StepPlan
    from engine.runner import Runner

BUCKET = 16
"""Rows that a graph was captured for."""


@planted(
    name="compiled-layer-lost",
    kind=FaultClass.COMPILE,
    mechanism="a pass takes the second layer for a copy of the first and drops it",
    sources=("vllm#56900",),
    exposed_by=exposed("compile=compiled"),
    conditions="any prompt",
    masked_by=("eager execution",),
    magnitude="cosine 0.5 to 0.9",
)
def compiled_layer_lost(runner: Runner) -> Undo:
    if not is_compiled(runner):
        return nothing
    before: list[torch.Tensor] = []

    def remember(frame: Frame, plan: StepPlan) -> None:
        del plan
        before[:] = [frame.x]

    def restore(frame: Frame, plan: StepPlan) -> None:
        del plan
        frame.x = before[0]

    return both(
        on_blocks(runner, remember, layer=1), on_blocks(runner, restore, layer=1, after=True)
    )


@planted(
    name="compiled-odd-tail",
    kind=FaultClass.COMPILE,
    mechanism="a vectorised loop leaves out its last row when the number of rows is odd",
    sources=("pytorch#183601",),
    exposed_by=exposed("compile=compiled"),
    conditions="a step with an odd number of rows",
    masked_by=("eager execution",),
    magnitude="one row misses one layer",
)
def compiled_odd_tail(runner: Runner) -> Undo:
    if not is_compiled(runner):
        return nothing
    before: list[torch.Tensor] = []

    def remember(frame: Frame, plan: StepPlan) -> None:
        del plan
        before[:] = [frame.x]

    def leave_out(frame: Frame, plan: StepPlan) -> None:
        del plan
        if len(frame.x) % 2:
            frame.x = frame.x.clone()
            frame.x[-1] = before[0][-1]

    return both(
        on_blocks(runner, remember, layer=0), on_blocks(runner, leave_out, layer=0, after=True)
    )


@planted(
    name="graph-bucket-too-small",
    kind=FaultClass.COMPILE,
    mechanism="rows beyond the bucket that a graph was captured for keep their old values",
    sources=("sglang#27343", "sglang#22427"),
    exposed_by=exposed("compile=compiled"),
    conditions=f"a step of more than {BUCKET} rows",
    masked_by=("eager execution", "short prompts"),
    magnitude="later rows miss one layer",
)
def graph_bucket_too_small(runner: Runner) -> Undo:
    if not is_compiled(runner):
        return nothing
    before: list[torch.Tensor] = []

    def remember(frame: Frame, plan: StepPlan) -> None:
        del plan
        before[:] = [frame.x]

    def keep(frame: Frame, plan: StepPlan) -> None:
        del plan
        frame.x = frame.x.clone()
        frame.x[BUCKET:] = before[0][BUCKET:]

    return both(on_blocks(runner, remember, layer=0), on_blocks(runner, keep, layer=0, after=True))


@planted(
    name="replay-of-last-step",
    kind=FaultClass.COMPILE,
    mechanism=(
        "with steps overlapping, a replayed graph reads the static input of the step before for "
        "the later chunks of a prompt"
    ),
    sources=("sglang#35588",),
    exposed_by=exposed("async=async & chunk=chunked & compile=compiled"),
    conditions="a prompt of two chunks or more",
    masked_by=("eager execution", "sync scheduling", "whole prompts", "short prompts"),
    magnitude="a chunk computed from the one before",
)
def replay_of_last_step(runner: Runner) -> Undo:
    if not (is_compiled(runner) and is_async(runner)):
        return nothing
    last: dict[int, torch.Tensor] = {}

    def stale(frame: Frame, plan: StepPlan) -> None:
        rows = len(frame.x)
        fresh = frame.x.clone()
        if any(entry.start for entry in plan.entries) and rows in last:
            frame.x = last[rows]
        last[rows] = fresh

    return on_blocks(runner, stale)

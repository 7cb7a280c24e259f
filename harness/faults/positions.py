"""Tokens turned by positions that are not theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults.base import FaultClass, Undo, exposed, planted
from harness.faults.seams import is_compiled, is_later_stage, nothing, on_blocks, on_positions

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.execution.base import Frame
    from engine.plan import StepPlan
    from engine.runner import Runner

TABLE = 48
"""Rows of a rotary table that is too short."""


@planted(
    name="positions-restart-in-chunks",
    kind=FaultClass.POSITION,
    mechanism="queries and keys of each chunk are turned as if the prompt began there",
    sources=("vllm#48214",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="cosine 0.3 to 0.9",
)
def positions_restart_in_chunks(runner: Runner) -> Undo:
    def restart(frame: Frame, plan: StepPlan) -> torch.Tensor:
        del plan
        sequence = runner.inputs["token_to_seq"][: len(frame.positions)]
        return (frame.positions - frame.meta.context_starts[sequence]).clamp(min=0)

    return on_positions(runner, restart)


@planted(
    name="positions-from-batch-row",
    kind=FaultClass.POSITION,
    mechanism="positions are the rows of the packed batch, counted through all its prompts",
    sources=("sentence-transformers#3879",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="cosine 0.3 to 0.9",
)
def positions_from_batch_row(runner: Runner) -> Undo:
    def rows(frame: Frame, plan: StepPlan) -> torch.Tensor:
        del plan
        ones: torch.Tensor = frame.positions.new_ones(len(frame.positions))
        return ones.cumsum(0) - 1

    return on_positions(runner, rows)


@planted(
    name="short-rotary-table",
    kind=FaultClass.POSITION,
    mechanism="the rotary table ends early and its last row serves every later position",
    sources=("pegainfer#250",),
    conditions=f"a prompt of more than {TABLE} tokens",
    masked_by=("short prompts",),
    magnitude="grows with length",
)
def short_rotary_table(runner: Runner) -> Undo:
    return on_positions(runner, lambda frame, _: frame.positions.clamp(max=TABLE - 1))


@planted(
    name="second-stage-other-scale",
    kind=FaultClass.POSITION,
    mechanism="later pipeline stages build their rotary angles with another scale",
    exposed_by=exposed("pp=2"),
    conditions="any prompt of two tokens or more",
    masked_by=("one stage",),
    magnitude="cosine 0.5 to 0.95",
)
def second_stage_other_scale(runner: Runner) -> Undo:
    if not is_later_stage(runner):
        return nothing
    return on_positions(runner, lambda frame, _: frame.positions * 2)


@planted(
    name="turned-the-other-way",
    kind=FaultClass.POSITION,
    mechanism="queries and keys are turned clockwise",
    conditions="any prompt of two tokens or more",
    magnitude="cosine 0.2 to 0.9",
)
def turned_the_other_way(runner: Runner) -> Undo:
    def back(frame: Frame, plan: StepPlan) -> None:
        del plan
        frame.sin = -frame.sin

    return on_blocks(runner, back)


@planted(
    name="compiled-keeps-first-angles",
    kind=FaultClass.COMPILE,
    mechanism="the compiled block has the angles of its first call of a size baked in",
    exposed_by=exposed("chunk=chunked & compile=compiled"),
    conditions="a prompt of two chunks or more",
    masked_by=("eager execution", "whole prompts", "short prompts"),
    magnitude="cosine 0.3 to 0.9",
)
def compiled_keeps_first_angles(runner: Runner) -> Undo:
    if not is_compiled(runner):
        return nothing
    first: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def baked(frame: Frame, plan: StepPlan) -> None:
        if not any(entry.start for entry in plan.entries):
            first[len(frame.positions)] = (frame.cos, frame.sin)
        frame.cos, frame.sin = first.get(len(frame.positions), (frame.cos, frame.sin))

    return on_blocks(runner, baked)

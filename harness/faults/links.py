"""Hidden states that arrive otherwise than they left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults.base import FaultClass, Undo, exposed, planted
from harness.faults.seams import is_async, is_later_stage, nothing, on_blocks

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.execution.base import Frame
    from engine.plan import StepPlan
    from engine.runner import Runner

ROOM = 16
"""Rows that a receive buffer is believed to hold."""


@planted(
    name="received-one-row-off",
    kind=FaultClass.LINK,
    mechanism="a stage takes the rows it received to begin one row later",
    exposed_by=exposed("pp=2"),
    conditions="any prompt of two tokens or more",
    masked_by=("one stage",),
    magnitude="every row is its neighbour's",
)
def received_one_row_off(runner: Runner) -> Undo:
    def shift(frame: Frame, plan: StepPlan) -> None:
        frame.x = frame.x.clone()
        rows = frame.x[: plan.num_tokens]
        rows.copy_(rows.roll(1, dims=0))

    return on_blocks(runner, shift) if is_later_stage(runner) else nothing


@planted(
    name="receive-buffer-too-small",
    kind=FaultClass.LINK,
    mechanism=f"rows beyond the first {ROOM} are not received",
    exposed_by=exposed("pp=2"),
    conditions=f"a step of more than {ROOM} tokens",
    masked_by=("one stage", "short prompts"),
    magnitude="later rows are zero",
)
def receive_buffer_too_small(runner: Runner) -> Undo:
    def cut(frame: Frame, plan: StepPlan) -> None:
        del plan
        frame.x = frame.x.clone()
        frame.x[ROOM:] = 0

    return on_blocks(runner, cut) if is_later_stage(runner) else nothing


@planted(
    name="first-chunk-received-again",
    kind=FaultClass.LINK,
    mechanism="later chunks of a size already seen are served from the last receive",
    sources=("vllm#47644",),
    exposed_by=exposed("chunk=chunked & pp=2"),
    conditions="a prompt of two chunks or more of equal size",
    masked_by=("one stage", "whole prompts", "short prompts"),
    magnitude="the hidden states of another chunk",
)
def first_chunk_received_again(runner: Runner) -> Undo:
    if not is_later_stage(runner):
        return nothing
    first: dict[int, torch.Tensor] = {}

    def again(frame: Frame, plan: StepPlan) -> None:
        if not any(entry.start for entry in plan.entries):
            first[len(frame.x)] = frame.x.clone()
        frame.x = first.get(len(frame.x), frame.x)

    return on_blocks(runner, again)


@planted(
    name="third-step-in-flight-mixed",
    kind=FaultClass.LINK,
    mechanism=(
        "with two stages and async scheduling a third batch is in flight, which the queue between "
        "the stages was not made for: its first row is added to every row"
    ),
    sources=("vllm#28899",),
    exposed_by=exposed("async=async & pp=2"),
    conditions="any prompt, and a device that async can act on",
    masked_by=("one stage", "sync scheduling"),
    magnitude="cosine 0.3 to 0.9",
)
def third_step_in_flight_mixed(runner: Runner) -> Undo:
    def mix(frame: Frame, plan: StepPlan) -> None:
        del plan
        first: torch.Tensor = frame.x[:1]
        frame.x = frame.x + first

    acts = is_later_stage(runner) and is_async(runner)
    return on_blocks(runner, mix) if acts else nothing

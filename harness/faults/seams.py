"""The engine's seams as faults use them: what is staged, what enters and leaves a block, pooling.

Every change runs where the original does: on the host while it stages, or as an operation of the
compute stream. An added operation costs nothing, so a paced device keeps the pace it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from inspect import getattr_static, isfunction
from types import MethodType
from typing import TYPE_CHECKING, Any

from harness.faults.base import Undo, replace_method

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.execution.base import Frame
    from engine.execution.queue import StepQueue
    from engine.inputs import InputArrays
    from engine.models.base import Block, LayerCache
    from engine.plan import StepPlan
    from engine.pooling.base import PoolingBatch
    from engine.pooling.dispatcher import Pooled
    from engine.runner import Runner
    from engine.scheduler.base import ScheduledStep


def nothing() -> None:
    """The undo of a fault that this rank does not have."""


def both(*undos: Undo) -> Undo:
    """Undo all, last first."""

    def undo() -> None:
        for one in reversed(undos):
            one()

    return undo


def is_compiled(runner: Runner) -> bool:
    return runner.config.execution.mode != "eager"


def is_async(runner: Runner) -> bool:
    return runner.config.scheduler.async_scheduling


def is_chunked(runner: Runner) -> bool:
    return bool(runner.config.scheduler.chunked_prefill)


def is_later_stage(runner: Runner) -> bool:
    return not runner.is_first


def on_stage(runner: Runner, change: Callable[[InputArrays, ScheduledStep], None]) -> Undo:
    """Change what the host staged, right after it did."""
    stage = runner.stage

    def staged(staging: InputArrays, step: ScheduledStep, *rest: Any) -> None:
        stage(staging, step, *rest)
        change(staging, step)

    return replace_method(runner, "stage", staged)


def on_blocks(
    runner: Runner,
    change: Callable[[Frame, StepPlan], None],
    *,
    layer: int | None = None,
    after: bool = False,
) -> Undo:
    """Change the frame before (or `after`) a block: this rank's first, `layer`, or -1 for each."""
    execution: Any = runner.execution  # eager or compiled: a graph has no place between blocks
    submit_block, stage = execution.submit_block, runner.stage
    wanted = runner.model.first_layer if layer is None else layer
    steps: list[StepPlan] = []

    def remember(staging: InputArrays, step: ScheduledStep, *rest: Any) -> None:
        steps[:] = [step.plan]
        stage(staging, step, *rest)

    def submit_changed(
        queue: StepQueue, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> Iterator[None]:
        plan, hit = steps[0], wanted in (index, -1)
        if hit and not after:
            queue.submit(f"before layer {index}", lambda: change(frame, plan), cost=0)
        yield from submit_block(queue, index, block, cache, frame)
        if hit and after:
            queue.submit(f"after layer {index}", lambda: change(frame, plan), cost=0)

    return both(
        replace_method(runner, "stage", remember),
        replace_method(execution, "submit_block", submit_changed),
    )


class _StandIn:
    """A block with parts of another making: its own methods run on them, all else is its own."""

    def __init__(self, block: Block, parts: Mapping[str, Any]) -> None:
        self._block = block
        for name, part in parts.items():
            setattr(self, name, MethodType(part, self) if isfunction(part) else part)

    def __getattr__(self, name: str) -> Any:
        found = getattr_static(type(self._block), name, None)
        return MethodType(found, self) if isfunction(found) else getattr(self._block, name)


def on_block_parts(runner: Runner, **parts: Any) -> Undo:
    """Compute every block of this rank with other parts, in eager: methods (functions whose first
    argument is the block) or attributes, `kernels` and `backend` among them.

    All engines of a process share the blocks, so each step is handed a stand-in. Compiled
    execution does not look into a block: nothing changes there.
    """
    if is_compiled(runner):
        return nothing
    execution: Any = runner.execution
    submit_block = execution.submit_block

    def submit_stand_in(
        queue: StepQueue, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> Iterator[None]:
        changed: Iterator[None] = submit_block(queue, index, _StandIn(block, parts), cache, frame)
        return changed

    return replace_method(execution, "submit_block", submit_stand_in)


def on_meta(runner: Runner, change: Callable[[Frame, StepPlan], dict[str, torch.Tensor]]) -> Undo:
    """Replace fields of the attention metadata that all blocks of this rank read."""

    def changed(frame: Frame, plan: StepPlan) -> None:
        frame.meta = replace(frame.meta, **change(frame, plan))

    return on_blocks(runner, changed)


def on_positions(runner: Runner, change: Callable[[Frame, StepPlan], torch.Tensor]) -> Undo:
    """Turn queries and keys by other positions [T]; no effect where positions are embedded."""

    def changed(frame: Frame, plan: StepPlan) -> None:
        frame.cos, frame.sin = runner.model.rotary(change(frame, plan))

    return on_blocks(runner, changed)


def on_hidden(runner: Runner, change: Callable[[torch.Tensor, PoolingBatch], torch.Tensor]) -> Undo:
    """Change the hidden states [T, D] that pooling reads; `change` gets a copy."""
    pooler = runner.pooler
    if pooler is None:
        return nothing
    pool = pooler.pool

    def pooled(hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        return pool(change(hidden.clone(), batch), batch)

    return replace_method(pooler, "pool", pooled)


def on_answers(
    runner: Runner, change: Callable[[list[Pooled], PoolingBatch], list[Pooled]]
) -> Undo:
    """Change the finished answers of a step, heads applied."""
    pooler = runner.pooler
    if pooler is None:
        return nothing
    pool = pooler.pool

    def pooled(hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        return change(pool(hidden, batch), batch)

    return replace_method(pooler, "pool", pooled)


def on_each_answer(runner: Runner, change: Callable[[torch.Tensor, Any], torch.Tensor]) -> Undo:
    """Change the rows of every answer; `change(rows, request)`."""

    def changed(answers: list[Pooled], batch: PoolingBatch) -> list[Pooled]:
        requests = {entry.request_id: entry.request for entry in batch.entries}
        return [replace(a, rows=change(a.rows, requests[a.request_id])) for a in answers]

    return on_answers(runner, changed)

"""State of requests, chunks and the cache that is not advanced, cleared or moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults.base import BASELINE, FaultClass, Undo, exposed, planted, replace_method
from harness.faults.seams import is_async, nothing, on_stage

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.inputs import InputArrays
    from engine.plan import StepPlan
    from engine.runner import Runner
    from engine.scheduler.base import ScheduledStep


@planted(
    name="stage-skips-poststep",
    kind=FaultClass.STATE,
    mechanism=(
        "every stage but the last returns its intermediate tensors before it advances its "
        "computed-token counters, so its later chunks run at the positions of the first"
    ),
    sources=("vllm#56666",),
    exposed_by=exposed("chunk=chunked & pp=2"),
    conditions="a prompt of more than one step",
    masked_by=("whole prompts", "short prompts"),
    magnitude="cosine 0.26 to 0.65",
)
def stage_skips_poststep(runner: Runner) -> Undo:
    post_step = runner.post_step

    def last_stage_only(plan: StepPlan) -> None:
        if runner.is_last:
            post_step(plan)

    return replace_method(runner, "post_step", last_stage_only)


@planted(
    name="counters-advance-on-output",
    kind=FaultClass.STATE,
    mechanism="the computed-token counters advance only after steps that finish a request",
    sources=("vllm#48214",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="cosine 0.3 to 0.9",
)
def counters_advance_on_output(runner: Runner) -> Undo:
    post_step = runner.post_step

    def outputs_only(plan: StepPlan) -> None:
        if plan.finishes_any:
            post_step(plan)

    return replace_method(runner, "post_step", outputs_only)


@planted(
    name="counter-one-behind",
    kind=FaultClass.STATE,
    mechanism="the counter of an unfinished prompt is advanced by one token too few",
    sources=("vllm#48214",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="each later chunk overlaps the one before by a token",
)
def counter_one_behind(runner: Runner) -> Undo:
    return _advance_by(runner, lambda finishes, count: count - int(not finishes))


@planted(
    name="async-advances-twice",
    kind=FaultClass.STATE,
    mechanism="with async scheduling, both the scheduler's and the worker's counter are advanced",
    sources=("pytorch#138908",),
    exposed_by=exposed("async=async & chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("sync scheduling", "whole prompts", "short prompts"),
    magnitude="later chunks at positions that were never computed",
)
def async_advances_twice(runner: Runner) -> Undo:
    if not is_async(runner):
        return nothing
    return _advance_by(runner, lambda finishes, count: count * (1 if finishes else 2))


def _advance_by(runner: Runner, step: object) -> Undo:
    def advance_wrongly(plan: StepPlan) -> None:
        counts = [step(e.finishes, e.count) for e in plan.entries]  # type: ignore[operator]

        def advance() -> None:
            slots = runner.inputs["state_slots"][: len(counts)]
            runner.counters.tensor[slots] += slots.new_tensor(counts)

        runner.compute.submit(
            "advance counters",
            advance,
            step=plan.index,
            reads=(runner.inputs.buffer,),
            writes=(runner.counters,),
        )

    return replace_method(runner, "post_step", advance_wrongly)


@planted(
    name="slot-not-cleared",
    kind=FaultClass.STATE,
    mechanism="a new request goes on counting where the last one on its state slot stopped",
    sources=("vllm#37873", "vllm#37884"),
    exposed_by=(BASELINE, *exposed("chunk=chunked", "compile=compiled", "async=async", "pp=2")),
    conditions=(
        "a second request on a slot that was used before, in whatever configuration; every cell's "
        "engine has a history of its own, so cells differ too"
    ),
    magnitude="cosine 0.3 to 0.9; the first requests after a start are right",
)
def slot_not_cleared(runner: Runner) -> Undo:
    def never_new(staging: InputArrays, step: ScheduledStep) -> None:
        del step
        staging["is_new"][:] = 0

    return on_stage(runner, never_new)


@planted(
    name="cached-prefix-forgotten",
    kind=FaultClass.STATE,
    mechanism=(
        "a prompt that begins with what the prefix cache holds is computed as if it began behind "
        "it: its rows stand at the first positions and see only themselves"
    ),
    sources=("vllm#28194", "vllm-ascend#7452"),
    exposed_by=exposed("prefix_cache=on"),
    conditions="two prompts that begin with the same block, pooled from the last row",
    masked_by=("one prompt at a time",),
    magnitude="cosine 0.5 to 0.9",
    axes=("prefix_cache",),
)
def cached_prefix_forgotten(runner: Runner) -> Undo:
    def forget(staging: InputArrays, step: ScheduledStep) -> None:
        del step
        staging["first_positions"][:] = 0

    return on_stage(runner, forget)


@planted(
    name="last-key-not-written",
    kind=FaultClass.STATE,
    mechanism="the last key and value of an unfinished chunk are never put into the cache",
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="one key of the context replaced by what was there before",
)
def last_key_not_written(runner: Runner) -> Undo:
    def drop(staging: InputArrays, step: ScheduledStep) -> None:
        row = 0
        for entry in step.plan.entries:
            row += entry.count
            if not entry.finishes:
                staging["slot_mapping"][row - 1] = -1

    return on_stage(runner, drop)


@planted(
    name="neighbours-blocks",
    kind=FaultClass.STATE,
    mechanism="block tables of the sequences that go on are written in the order they arrived in",
    sources=("vllm-ascend#12130", "DMI#67"),
    exposed_by=exposed("chunk=chunked"),
    conditions="two prompts in one step, one of them in a later chunk",
    masked_by=("one prompt at a time", "whole prompts", "short prompts"),
    magnitude="the context of another prompt",
)
def neighbours_blocks(runner: Runner) -> Undo:
    def swap(staging: InputArrays, step: ScheduledStep) -> None:
        entries = step.plan.entries
        if len(entries) > 1 and any(entry.start for entry in entries):
            tables = staging["block_tables"][: len(entries)]
            tables.copy_(tables.flip(0).clone())

    return on_stage(runner, swap)


@planted(
    name="chunk-rows-newest-first",
    kind=FaultClass.STATE,
    mechanism="the retained rows of a prompt are joined newest first",
    sources=("vllm#41049",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a token-level request of two chunks or more",
    masked_by=("whole prompts", "short prompts", "sequence-level tasks"),
    magnitude="rows of other tokens",
)
def chunk_rows_newest_first(runner: Runner) -> Undo:
    if runner.pooler is None:
        return nothing
    store = runner.pooler.store
    take = store.take

    def newest_first(request_id: str) -> list[torch.Tensor]:
        return take(request_id)[::-1]

    return replace_method(store, "take", newest_first)

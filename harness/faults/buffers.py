"""Buffers written again while someone still reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.faults.base import FaultClass, Undo, exposed, planted, replace_method
from harness.faults.seams import nothing, on_stage

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.inputs import InputArrays
    from engine.plan import StepPlan
    from engine.pooling.base import PoolingBatch
    from engine.pooling.dispatcher import Pooled
    from engine.runner import Runner
    from engine.scheduler.base import ScheduledStep


@planted(
    name="stale-input-buffer",
    kind=FaultClass.BUFFER,
    mechanism=(
        "no fence is recorded for a step without an output, so the one staging buffer is written "
        "for the next step while the device has yet to read it"
    ),
    sources=("vllm#48831", "vllm#48901"),
    exposed_by=exposed("chunk=chunked", "chunk=chunked & compile=compiled"),
    conditions=(
        "a prompt of three chunks or more; under a device paced to keep up with eager, only "
        "together with compile=compiled"
    ),
    masked_by=("a device that keeps up", "short prompts", "whole prompts"),
    magnitude="cosine about 0.5 on LAST embeddings; score 0.33 for 0.83",
)
def stale_input_buffer(runner: Runner) -> Undo:
    fence = runner.fence_inputs

    def fence_outputs_only(staging: InputArrays, plan: StepPlan) -> None:
        if plan.finishes_any:
            fence(staging, plan)

    return replace_method(runner, "fence_inputs", fence_outputs_only)


@planted(
    name="never-fenced",
    kind=FaultClass.BUFFER,
    mechanism="the host stages every step without waiting for the last reader of the buffer",
    sources=(
        "vllm#47644",
        "Megatron-LM#5715",
        "ninfer-3090#44",
        "vllm#25279",
        "vllm#32799",
    ),
    exposed_by=exposed(
        "chunk=chunked",
        "async=async",
        "pp=2",
        "chunk=chunked & compile=compiled",
        "async=async & compile=compiled",
        "compile=compiled & pp=2",
    ),
    conditions=(
        "two steps or more, and a device that lags behind the host; under one paced to keep up "
        "with eager, only together with compile=compiled"
    ),
    masked_by=("a device that keeps up",),
    magnitude="answers of other tokens",
)
def never_fenced(runner: Runner) -> Undo:
    def no_fence(staging: InputArrays, plan: StepPlan) -> None:
        del staging, plan

    return replace_method(runner, "fence_inputs", no_fence)


@planted(
    name="unawaited-send",
    kind=FaultClass.BUFFER,
    mechanism="a stage writes its hidden buffer again before the next stage has received it",
    sources=("vllm#28899",),
    exposed_by=exposed("pp=2", "chunk=chunked & pp=2"),
    conditions=(
        "two steps or more, and a second stage that lags; where whole prompts fit one step, only "
        "chunks make a second"
    ),
    masked_by=("a device that keeps up", "one stage"),
    magnitude="hidden states of the step after",
)
def unawaited_send(runner: Runner) -> Undo:
    return replace_method(runner, "await_send", lambda: None)


@planted(
    name="pooler-reads-host-offsets",
    kind=FaultClass.BUFFER,
    mechanism=(
        "pooling takes the row offsets from the host's staging buffer when it runs, not from the "
        "step's own copy: by then they may be the next step's"
    ),
    sources=("vllm#48901",),
    exposed_by=exposed(
        "async=async", "pp=2", "async=async & compile=compiled", "compile=compiled & pp=2"
    ),
    conditions=(
        "LAST pooling, steps in flight, and a device that lags; under one paced to keep up with "
        "eager, only together with compile=compiled"
    ),
    masked_by=("sync scheduling on one stage", "token-level tasks"),
    magnitude="the row of another token or prompt",
)
def pooler_reads_host_offsets(runner: Runner) -> Undo:
    pooler = runner.pooler
    if pooler is None:
        return nothing
    pool = pooler.pool
    latest: list[InputArrays] = []

    def remember(staging: InputArrays, step: ScheduledStep) -> None:
        del step
        latest[:] = [staging]

    def pool_by_host(hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        offsets = latest[0]["row_offsets"][: len(batch.entries) + 1]
        return pool(hidden, replace(batch, row_offsets=offsets.to(hidden.device)))

    undo_stage = on_stage(runner, remember)
    undo_pool = replace_method(pooler, "pool", pool_by_host)

    def undo() -> None:
        undo_pool()
        undo_stage()

    return undo


@planted(
    name="counters-on-copy-stream",
    kind=FaultClass.BUFFER,
    mechanism=(
        "the counters of computed tokens are advanced on the copy stream, which nothing orders "
        "before the next step reads them"
    ),
    sources=("vllm#48214", "vllm#31570"),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more, and a copy stream that lags",
    masked_by=("a device that keeps up", "short prompts", "whole prompts"),
    magnitude="later chunks at the positions of the first",
)
def counters_on_copy_stream(runner: Runner) -> Undo:
    def advance_late(plan: StepPlan) -> None:
        num_seqs = len(plan.entries)
        counts = [entry.count for entry in plan.entries]

        def advance() -> None:
            slots = runner.inputs["state_slots"][:num_seqs]
            runner.counters.tensor[slots] += slots.new_tensor(counts)

        runner.copy.submit(
            "advance counters",
            advance,
            step=plan.index,
            reads=(runner.inputs.buffer,),
            writes=(runner.counters,),
        )

    return replace_method(runner, "post_step", advance_late)

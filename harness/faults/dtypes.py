"""Numbers that pass through fewer bits than they should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.faults.base import FaultClass, Undo, exposed, planted, replace_method
from harness.faults.seams import (
    is_async,
    is_compiled,
    is_later_stage,
    nothing,
    on_blocks,
    on_each_answer,
)

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.execution.base import Frame
    from engine.plan import StepPlan
    from engine.runner import Runner


SAME = {"bfloat16": "what it rounds to bfloat16 is bfloat16 already"}


def _narrow(frame: Frame, plan: StepPlan) -> None:
    del plan
    frame.x = frame.x.bfloat16().to(frame.x.dtype)


@planted(
    name="link-in-bfloat16",
    kind=FaultClass.DTYPE,
    mechanism="hidden states travel between stages in bfloat16",
    exposed_by=exposed("pp=2"),
    conditions="any prompt",
    masked_by=("one stage",),
    magnitude="1 - cosine about 1e-6, relative error 1e-3",
    equivalent=SAME,
)
def link_in_bfloat16(runner: Runner) -> Undo:
    return on_blocks(runner, _narrow) if is_later_stage(runner) else nothing


@planted(
    name="compiled-in-bfloat16",
    kind=FaultClass.DTYPE,
    mechanism="the compiled block rounds its output to bfloat16",
    sources=("pytorch#159239",),
    exposed_by=exposed("compile=compiled"),
    conditions="any prompt",
    masked_by=("eager execution",),
    magnitude="relative error 1e-3",
    equivalent=SAME,
)
def compiled_in_bfloat16(runner: Runner) -> Undo:
    return on_blocks(runner, _narrow, layer=-1, after=True) if is_compiled(runner) else nothing


@planted(
    name="async-in-bfloat16",
    kind=FaultClass.DTYPE,
    mechanism="the path that overlaps steps keeps its residuals in bfloat16",
    exposed_by=exposed("async=async"),
    conditions="any prompt, and a device that async can act on",
    masked_by=("sync scheduling",),
    magnitude="relative error 1e-3",
    equivalent=SAME,
)
def async_in_bfloat16(runner: Runner) -> Undo:
    return on_blocks(runner, _narrow) if is_async(runner) else nothing


@planted(
    name="cached-keys-in-bfloat16",
    kind=FaultClass.DTYPE,
    mechanism="keys are cached in bfloat16: later chunks read other keys than were written",
    sources=("llama.cpp#9166",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="relative error 1e-3",
    equivalent=SAME,
)
def cached_keys_in_bfloat16(runner: Runner) -> Undo:
    post_step = runner.post_step

    def narrow_cache() -> None:
        for cache in (layer.cache for layer in runner.layers):
            cache.keys.copy_(cache.keys.bfloat16().to(cache.keys.dtype))

    def narrow_then_advance(plan: StepPlan) -> None:
        runner.compute.submit("store keys", narrow_cache, step=plan.index, cost=0)
        post_step(plan)

    return replace_method(runner, "post_step", narrow_then_advance)


@planted(
    name="angles-in-bfloat16",
    kind=FaultClass.DTYPE,
    mechanism="rotary angles are computed in bfloat16",
    sources=("pytorch#159239",),
    conditions="a prompt of several tokens",
    magnitude="relative error 1e-3, more for long prompts",
    equivalent=SAME,
)
def angles_in_bfloat16(runner: Runner) -> Undo:
    def narrow(frame: Frame, plan: StepPlan) -> None:
        del plan
        frame.cos = frame.cos.bfloat16().to(frame.cos.dtype)
        frame.sin = frame.sin.bfloat16().to(frame.sin.dtype)

    return on_blocks(runner, narrow)


@planted(
    name="answers-in-half",
    kind=FaultClass.DTYPE,
    mechanism="answers are rounded to half precision on their way out",
    sources=("sentence-transformers#3894", "infinity#203"),
    conditions="any prompt",
    magnitude="relative error 2e-4; scores tie",
    equivalent={
        "bfloat16": "half precision holds an embedding of bfloat16; a score is float32 and loses "
        "2^-11 of itself, where bfloat16 rounded it by up to 2^-9 in every layer"
    },
)
def answers_in_half(runner: Runner) -> Undo:
    def narrow(rows: torch.Tensor, request: Any) -> torch.Tensor:
        del request
        return rows.half().to(rows.dtype)

    return on_each_answer(runner, narrow)

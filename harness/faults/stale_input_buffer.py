"""S1: a step that finishes no request leaves its staging unfenced, so the host rewrites it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.faults.base import Fault, replace_method

if TYPE_CHECKING:  # the table of faults is read without loading torch
    from engine.inputs import InputArrays
    from engine.plan import StepPlan
    from engine.runner import Runner

FAULT = Fault(
    name="stale-input-buffer",
    plugin="harness.faults.stale_input_buffer:apply",
    mechanism=(
        "no fence is recorded for a step without an output, so the one staging buffer is written "
        "for the next step while the device has yet to read it"
    ),
    sources=("vllm#48831", "vllm#48901"),
    exposed_by=(frozenset({"chunk=chunked"}),),
    conditions=(
        "a prompt of three chunks or more; under a device paced to keep up with eager, only "
        "together with compile=compiled"
    ),
    masked_by=("a device that keeps up", "every step having an output"),
    magnitude="cosine about 0.5 on LAST embeddings; score 0.33 for 0.83",
)


def apply(runner: Runner) -> Callable[[], None]:
    fence = runner.fence_inputs

    def fence_outputs_only(staging: InputArrays, plan: StepPlan) -> None:
        if plan.finishes_any:
            fence(staging, plan)

    return replace_method(runner, "fence_inputs", fence_outputs_only)

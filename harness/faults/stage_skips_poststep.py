"""S3: a pipeline stage that hands its output on forgets the post-step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.faults.base import Fault, replace_method

if TYPE_CHECKING:  # the table of faults is read without loading torch
    from engine.plan import StepPlan
    from engine.runner import Runner

FAULT = Fault(
    name="stage-skips-poststep",
    plugin="harness.faults.stage_skips_poststep:apply",
    mechanism=(
        "every stage but the last returns its intermediate tensors before it advances its "
        "computed-token counters, so its later chunks run at the positions of the first"
    ),
    sources=("vllm#56666",),
    exposed_by=(frozenset({"chunk=chunked", "pp=2"}),),
    conditions="a prompt of more than one step",
    masked_by=("a prompt that fits one step",),
    magnitude="cosine 0.26 to 0.65",
)


def apply(runner: Runner) -> Callable[[], None]:
    post_step = runner.post_step

    def last_stage_only(plan: StepPlan) -> None:
        if runner.is_last:
            post_step(plan)

    return replace_method(runner, "post_step", last_stage_only)

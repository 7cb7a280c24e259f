"""Plug-ins that make a CUDA device lag its host, as it would under a larger model.

A generated checkpoint keeps a large GPU busy for microseconds: the device is done with a step
before the host has submitted the next one, so no order of reuse is ever put to the test, and steps
never overlap. Each plug-in lets one of a rank's streams idle in every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

IDLE_CYCLES = 40_000_000
"""About 20 ms on a GPU of 2 GHz; the host submits a step of a small model in less."""
LAGS = {
    "compute": "harness.systems.lagging:lagging_compute",
    "copy": "harness.systems.lagging:lagging_copy",
}
"""Value of the setting `lag` -> plug-in."""


def lagging_compute(runner: Any) -> Callable[[], None]:
    """The compute stream idles at the end of every step."""
    post_step = runner.post_step

    def post_step_late(plan: Any) -> None:
        runner.compute.submit("idle", _idle, step=plan.index, cost=0)
        post_step(plan)

    runner.post_step = post_step_late
    return lambda: vars(runner).pop("post_step", None)


def lagging_copy(runner: Any) -> Callable[[], None]:
    """The copy stream idles before it takes a step's rows to the host."""
    copy_to_host = runner.copy_to_host

    def copy_late(plan: Any, *arguments: Any) -> Any:
        if runner.answers and plan.finishes_any:
            runner.copy.submit("idle", _idle, step=plan.index, cost=0)
        return copy_to_host(plan, *arguments)

    runner.copy_to_host = copy_late
    return lambda: vars(runner).pop("copy_to_host", None)


def _idle() -> None:
    torch.cuda._sleep(IDLE_CYCLES)  # type: ignore[no-untyped-call]

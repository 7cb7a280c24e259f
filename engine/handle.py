"""A step's handle: what it finished, as rows that the caller owns, once they have been copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from engine.plan import StepPlan
from engine.pooling.dispatcher import Pooled
from engine.request import PoolingFailure, PoolingOutput, PoolingRequest, PoolingResult
from engine.stream.base import Event


class StepHandle(Protocol):
    """A submitted step. Every step returns one, whether or not it produces an output."""

    @property
    def plan(self) -> StepPlan: ...

    def result(self) -> tuple[PoolingResult, ...]:
        """What became of the requests this step finished, owned by the caller.

        Waits for the device only when there is something to fetch.
        """


class RunnerHandle:
    """Owns: the host rows of one step's finished requests until they are taken."""

    def __init__(self, host: str, plan: StepPlan, events: Sequence[Event]) -> None:
        self._host, self.plan, self._events = host, plan, tuple(events)
        self.outputs: list[PoolingResult] = []

    def result(self) -> tuple[PoolingResult, ...]:
        if self.plan.finishes_any:
            self.wait()
        return tuple(self.outputs)

    def wait(self) -> None:
        """Until this rank has done all of the step that someone else depends on."""
        for event in self._events:
            event.synchronize(self._host)


def result_of(pooled: Pooled, request: PoolingRequest) -> PoolingResult:
    """What a pooled answer is to the caller; queues the copy to the host, or on a CPU makes it."""
    if pooled.failure:
        return PoolingFailure(request_id=pooled.request_id, reason=pooled.failure)
    return PoolingOutput(
        request_id=pooled.request_id,
        task=request.task,
        values=_to_host(pooled),
        num_prompt_tokens=request.num_tokens,
    )


def _to_host(pooled: Pooled) -> torch.Tensor:
    """Owned host rows. On the CPU too this is a real copy: the caller never sees a device view.

    From a GPU into pinned memory, so that the host need not wait until the rows are there.
    """
    rows = pooled.rows.detach()
    if rows.device.type == "cpu":
        return rows.clone()
    return torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True).copy_(rows, non_blocking=True)

"""An engine loop without an engine: schedules, takes results late, and watches every resource."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engine.plan import StepPlan
from engine.scheduler.base import Allocation, ScheduledStep, Scheduler


@dataclass(kw_only=True)
class Loop:
    """Runs a scheduler to the end with up to `depth` steps in flight.

    Whenever a result could be taken and a step could be scheduled, `choices` says which
    (True: take the result). Owns: the steps in flight and the record of who holds what.
    """

    scheduler: Scheduler
    depth: int = 1
    choices: Iterator[bool] = field(default_factory=lambda: iter(()))
    before_step: Callable[[int], None] = lambda index: None
    steps: list[ScheduledStep] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    in_flight: deque[StepPlan] = field(default_factory=deque)
    holding: dict[str, Allocation] = field(default_factory=dict)

    def run(self) -> tuple[StepPlan, ...]:
        """The plan that was emitted, once there is no more work."""
        self.before_step(0)
        while self.scheduler.has_work:
            take = len(self.in_flight) == self.depth or (
                bool(self.in_flight) and next(self.choices, False)
            )
            step = None if take else self.scheduler.schedule()
            if step is not None:
                self._started(step)
                self.before_step(len(self.steps))
            else:
                assert self.in_flight, "stuck: work left, nothing in flight, nothing scheduled"
                self.take_result()
            self.scheduler.check_integrity()
        assert not self.in_flight
        assert not self.holding
        return tuple(step.plan for step in self.steps)

    def take_result(self) -> None:
        step = self.in_flight.popleft()
        finished = self.scheduler.complete(step)
        assert finished == tuple(e.request_id for e in step.entries if e.finishes)
        for request_id in finished:
            del self.holding[request_id]
        self.finished += finished

    def _started(self, step: ScheduledStep) -> None:
        assert set(step.allocations) == {e.request_id for e in step.plan.entries}
        for entry in step.plan.entries:
            allocation = step.allocations[entry.request_id]
            assert allocation.is_new == (entry.start == 0)
            if allocation.is_new:
                for other, held in self.holding.items():
                    assert held.slot != allocation.slot, (other, entry)
                    assert not set(held.blocks) & set(allocation.blocks), (other, entry)
                self.holding[entry.request_id] = allocation
            held = self.holding[entry.request_id]
            assert (allocation.slot, allocation.blocks) == (held.slot, held.blocks)
        self.in_flight.append(step.plan)
        self.steps.append(step)

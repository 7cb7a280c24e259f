"""An engine loop without an engine: schedules, takes results late, and watches every resource."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engine.plan import PlanEntry, StepPlan
from engine.scheduler.base import Allocation, ScheduledStep, Scheduler


@dataclass(kw_only=True)
class Loop:
    """Runs a scheduler to the end with up to `depth` steps in flight.

    Whenever a result could be taken and a step could be scheduled, `choices` says which
    (True: take the result). Owns: the steps in flight and the record of who holds what.
    """

    scheduler: Scheduler
    depth: int = 1
    block_size: int = 4
    choices: Iterator[bool] = field(default_factory=lambda: iter(()))
    before_step: Callable[[int], None] = lambda index: None
    steps: list[ScheduledStep] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    in_flight: deque[ScheduledStep] = field(default_factory=deque)
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
        finished = self.scheduler.complete(step.plan)
        assert finished == tuple(e.request_id for e in step.plan.entries if e.finishes)
        for request_id in finished:
            del self.holding[request_id]
        self.finished += finished

    def _started(self, step: ScheduledStep) -> None:
        assert set(step.allocations) == {e.request_id for e in step.plan.entries}
        for lost in step.plan.preempted:
            assert not self.in_flight, f"{lost} lost memory that a step in flight may read"
            del self.holding[lost.request_id]
        for entry in step.plan.entries:
            allocation = step.allocations[entry.request_id]
            held = self.holding.get(entry.request_id)
            assert allocation.is_new == (held is None)
            before = 0 if held is None else len(held.blocks)
            if held is None:
                slots = [other.slot for other in self.holding.values()]
                assert allocation.slot not in slots, entry
            else:
                assert allocation.slot == held.slot
                assert allocation.blocks[:before] == held.blocks
            self._check_written(entry, allocation)
            self.holding[entry.request_id] = allocation
        self.in_flight.append(step)
        self.steps.append(step)

    def _check_written(self, entry: PlanEntry, allocation: Allocation) -> None:
        """A block that the piece writes is read and written by no other request in flight."""
        if not allocation.blocks:
            return
        written = set(allocation.blocks[entry.start // self.block_size :])
        for other in self.in_flight:
            for name, theirs in other.allocations.items():
                assert name == entry.request_id or not written & set(theirs.blocks), (name, entry)

"""Progress of one request through the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.errors import LedgerError
from engine.kv.prefix import Prefix


class SequenceState(StrEnum):
    """WAITING holds nothing; RUNNING holds a slot; FINISHED gave everything back.

    A running sequence also holds KV blocks until its last token is scheduled.
    """

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(slots=True, kw_only=True)
class Sequence:
    """How far one prompt of `total` tokens has been scheduled.

    `num_scheduled` advances when a step is scheduled, not when its result is taken, so the next
    chunk can be scheduled while this one still runs. A sequence stays RUNNING until the results
    of all `num_in_flight` steps that contain it have been taken.

    Owns: its own counters; moved by the `Roster` only.
    """

    request_id: str
    total: int
    priority: int = 0
    arrival: int
    prefix: Prefix = field(default_factory=Prefix)
    num_scheduled: int = 0
    num_in_flight: int = 0
    num_preemptions: int = 0
    slot: int | None = None
    aborted: bool = False
    state: SequenceState = SequenceState.WAITING

    @property
    def rank(self) -> tuple[int, int]:
        """Its place in line, which no preemption changes: lower priority value, then arrival."""
        return self.priority, self.arrival

    @property
    def num_remaining(self) -> int:
        """Tokens no step has been scheduled for; none once the request is aborted."""
        return 0 if self.aborted else self.total - self.num_scheduled

    @property
    def is_running(self) -> bool:
        return self.state is SequenceState.RUNNING

    def advance(self, count: int) -> None:
        """Record that one more step, now in flight, runs the next `count` tokens."""
        if not 1 <= count <= self.num_remaining:
            raise LedgerError(
                f"request {self.request_id!r} cannot advance by count={count}: "
                f"expected between 1 and the {self.num_remaining} tokens that remain"
            )
        self.num_scheduled += count
        self.num_in_flight += 1

    def go_back(self) -> None:
        """Preempted: everything is to be computed again. No step of it may be in flight."""
        if self.num_in_flight or not self.is_running or not self.num_remaining:
            raise LedgerError(f"cannot preempt {self}")
        self.num_scheduled, self.slot = 0, None
        self.num_preemptions += 1
        self.state = SequenceState.WAITING

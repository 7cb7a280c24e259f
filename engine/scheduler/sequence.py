"""Progress of one request through the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.errors import LedgerError


class SequenceState(StrEnum):
    """WAITING holds nothing; RUNNING holds a slot (and KV blocks); FINISHED gave them back."""

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
    num_scheduled: int = 0
    num_in_flight: int = 0
    slot: int | None = None
    aborted: bool = False
    state: SequenceState = SequenceState.WAITING

    @property
    def num_remaining(self) -> int:
        """Tokens no step has been scheduled for; none once the request is aborted."""
        return 0 if self.aborted else self.total - self.num_scheduled

    def advance(self, count: int) -> None:
        """Record that one more step, now in flight, runs the next `count` tokens."""
        if not 1 <= count <= self.num_remaining:
            raise LedgerError(
                f"request {self.request_id!r} cannot advance by count={count}: "
                f"expected between 1 and the {self.num_remaining} tokens that remain"
            )
        self.num_scheduled += count
        self.num_in_flight += 1

"""What every scheduler offers to the engine loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from engine.kv.prefix import Prefix
from engine.plan import StepPlan
from engine.scheduler.memory import MemoryWitness


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What one request holds while a step runs it.

    `slot` is the row of the device-side counter, `blocks` the KV blocks of the prompt up to the
    end of this step's piece, in position order (empty without paged KV). `is_new`: this is the
    request's first step, or its first since it was preempted, so the slot's counter still holds
    its previous occupant's value and must be set to where the piece starts.
    """

    slot: int
    blocks: tuple[int, ...]
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledStep:
    """One step to run: the plan, and what each request in it holds (by request id).

    `dropped`: KV blocks whose contents no step from this one on may read.
    """

    plan: StepPlan
    allocations: Mapping[str, Allocation]
    dropped: tuple[int, ...] = ()


class Scheduler(Protocol):
    """Turns requests into steps.

    What a step holds depends on the requests and on the steps before it, never on which results
    have been taken: when the next step needs a slot or blocks that a step in flight still uses,
    `schedule` returns None until `complete` has freed them. Sync and async scheduling therefore
    make the same plan.
    """

    @property
    def has_work(self) -> bool:
        """Whether there is a step to schedule or a result to take."""
        ...

    @property
    def memory(self) -> MemoryWitness:
        """What the ledger counted so far."""
        ...

    def add(
        self,
        request_id: str,
        num_tokens: int,
        *,
        priority: int = 0,
        prefix: Prefix | None = None,
    ) -> None:
        """Queue a prompt; lower `priority` first. Raises `RequestError` if it can never run.

        `prefix`: what the prefix cache may know it by; None leaves it out of the cache.
        """
        ...

    def schedule(self) -> ScheduledStep | None:
        """The next step, or None when nothing can run now. The step is in flight from here on."""
        ...

    def complete(self, step: StepPlan) -> tuple[str, ...]:
        """The result of the oldest step in flight was taken.

        Returns the ids of finished requests in batch order; what they held may be put to another
        use. An aborted request is retired by its last step too, and its id is not among them.
        """
        ...

    def abort(self, request_id: str) -> None:
        """Schedule no more of a request; what it held is used again once no step in flight does.

        An id that is not known (any more) is ignored: an abort may cross the result on its way.
        """
        ...

    def check_integrity(self) -> None:
        """Raise `LedgerError` unless every slot and block is accounted for."""
        ...

"""First come, first served."""

from __future__ import annotations

from bisect import insort

from engine.config import SchedulerConfig
from engine.errors import RequestError
from engine.kv.blocks import BlockPool
from engine.plan import PlanEntry, StepPlan
from engine.scheduler.base import ScheduledStep
from engine.scheduler.roster import Roster
from engine.scheduler.sequence import Sequence


class FcfsScheduler:
    """Running sequences in admission order, then waiting ones by (priority, arrival).

    A step holds at most `max_num_seqs` entries and `max_num_batched_tokens` tokens. With chunked
    prefill a prompt takes what is left of the budget; without, or when the model cannot be
    chunked (`can_chunk` False), a prompt that does not fit what is left waits for the next step.
    The head of the queue is never overtaken, so nothing starves within a priority. KV blocks for
    the whole prompt are taken at admission.

    Owns: the waiting queue. Implements `Scheduler`.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        pool: BlockPool | None,
        max_slots: int,
        can_chunk: bool,  # noqa: FBT001
    ) -> None:
        self._config = config
        self._chunked = can_chunk and config.chunked_prefill is not False
        self._can_chunk = can_chunk
        self._roster = Roster(pool, max_slots)
        self._waiting: list[Sequence] = []
        self._num_steps = 0

    @property
    def has_work(self) -> bool:
        return self._roster.has_work

    def add(self, request_id: str, num_tokens: int, *, priority: int = 0) -> None:
        budget = self._config.max_num_batched_tokens
        if not self._chunked and num_tokens > budget:
            remedy = (
                "raise the budget, shorten the prompt or turn chunked_prefill on"
                if self._can_chunk
                else "raise the budget or shorten the prompt (this model cannot be chunked)"
            )
            raise RequestError(
                f"request {request_id!r} has num_tokens={num_tokens}, more than "
                f"max_num_batched_tokens={budget}, and must run in one step: {remedy}"
            )
        sequence = self._roster.add(request_id, num_tokens, priority)
        insort(self._waiting, sequence, key=lambda s: (s.priority, s.arrival))

    def schedule(self) -> ScheduledStep | None:
        entries: list[PlanEntry] = []
        budget = self._config.max_num_batched_tokens
        for sequence in self._roster.unfinished:
            count = self._take(sequence, budget, len(entries))
            if not count:
                break
            entries.append(_next_entry(sequence, count))
            budget -= count
        admitted: list[Sequence] = []
        for sequence in self._waiting:
            count = self._take(sequence, budget, len(entries))
            if not count or not self._roster.fit_once_settled([*admitted, sequence]):
                break
            entries.append(_next_entry(sequence, count))
            budget -= count
            admitted.append(sequence)
        if not entries or not self._roster.fit_now(admitted):
            return None
        plan = StepPlan(index=self._num_steps, entries=tuple(entries))
        self._num_steps += 1
        del self._waiting[: len(admitted)]
        return self._roster.emit(plan)

    def complete(self, step: StepPlan) -> tuple[str, ...]:
        return self._roster.complete(step)

    def abort(self, request_id: str) -> None:
        self._roster.abort(request_id)
        self._waiting = [s for s in self._waiting if not s.aborted]

    def check_integrity(self) -> None:
        self._roster.check_integrity()

    def _take(self, sequence: Sequence, budget: int, num_entries: int) -> int:
        """How many of the sequence's tokens the step can still take."""
        if num_entries == self._config.max_num_seqs:
            return 0
        if self._chunked:
            return min(sequence.num_remaining, budget)
        return sequence.num_remaining if sequence.num_remaining <= budget else 0


def _next_entry(sequence: Sequence, count: int) -> PlanEntry:
    return PlanEntry(
        request_id=sequence.request_id,
        start=sequence.num_scheduled,
        count=count,
        total=sequence.total,
    )

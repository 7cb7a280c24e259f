"""First come, first served, within a priority."""

from __future__ import annotations

from bisect import insort

from engine.config import SchedulerConfig
from engine.errors import RequestError
from engine.kv.blocks import BlockPool
from engine.kv.prefix import Prefix
from engine.plan import StepPlan
from engine.scheduler.base import ScheduledStep
from engine.scheduler.draft import Draft
from engine.scheduler.memory import MemoryWitness
from engine.scheduler.roster import Roster
from engine.scheduler.sequence import Sequence


class FcfsScheduler:
    """Every unfinished prompt stands in one line by (priority, arrival), running or waiting.

    A step serves the line from its head, with at most `max_num_seqs` entries and
    `max_num_batched_tokens` tokens. With chunked prefill a prompt takes what is left of the
    budget, but no more than `long_prefill_token_threshold` while others stand in line; without,
    or when the model cannot be chunked (`can_chunk` False), a prompt that does not fit what is
    left waits for the next step. Nobody is overtaken, so nothing starves within a priority.

    KV blocks are taken chunk by chunk. Where they (or state slots) run out, running prompts are
    preempted from the end of the line, and nobody is admitted behind that in the same step. The
    head of the line can have everybody's blocks and a prompt that needs more than the pool is
    refused when it is added, so every step brings the head forward.

    Owns: the line. Implements `Scheduler`.
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
        self._line: list[Sequence] = []
        self._num_steps = 0

    @property
    def has_work(self) -> bool:
        return self._roster.has_work

    @property
    def memory(self) -> MemoryWitness:
        return self._roster.memory

    def add(
        self,
        request_id: str,
        num_tokens: int,
        *,
        priority: int = 0,
        prefix: Prefix | None = None,
    ) -> None:
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
        sequence = self._roster.add(request_id, num_tokens, priority, prefix)
        insort(self._line, sequence, key=lambda s: s.rank)

    def schedule(self) -> ScheduledStep | None:
        draft = Draft(self._roster)
        for position, sequence in enumerate(self._line):
            if not self._place(draft, sequence, self._line[position + 1 :]):
                break
        if not draft.entries or not draft.is_ready():
            return None
        step = self._roster.emit(draft.plan(self._num_steps))
        self._num_steps += 1
        self._line = [s for s in self._line if s.num_remaining]
        return step

    def complete(self, step: StepPlan) -> tuple[str, ...]:
        return self._roster.complete(step)

    def abort(self, request_id: str) -> None:
        self._roster.abort(request_id)
        self._line = [s for s in self._line if not s.aborted]

    def check_integrity(self) -> None:
        self._roster.check_integrity()

    def _place(self, draft: Draft, sequence: Sequence, behind: list[Sequence]) -> bool:
        """Put the sequence's next tokens into the step; False ends the step."""
        if sequence.request_id in draft.preempted:
            return False
        if len(draft.entries) == self._config.max_num_seqs:
            return False
        if draft.preempted and not sequence.is_running:
            return False
        start = sequence.num_scheduled if sequence.is_running else draft.cached_tokens(sequence)
        left = self._config.max_num_batched_tokens - draft.num_tokens
        count = self._take(sequence.total - start, left)
        if not count:
            return False
        victims = [s for s in reversed(behind) if s.is_running]
        return draft.place(sequence, start, count, victims)

    def _take(self, remaining: int, budget: int) -> int:
        """How many of a prompt's remaining tokens the step can still take."""
        if not self._chunked:
            return remaining if remaining <= budget else 0
        threshold = self._config.long_prefill_token_threshold
        if threshold and len(self._line) > 1:
            budget = min(budget, threshold)
        return min(remaining, budget)

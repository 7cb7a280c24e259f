"""The requests a scheduler knows, what they hold, and the steps in flight."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from engine.errors import LedgerError, RequestError
from engine.kv.blocks import BlockPool
from engine.plan import StepPlan
from engine.scheduler.base import Allocation, ScheduledStep
from engine.scheduler.sequence import Sequence, SequenceState
from engine.scheduler.slots import SlotPool


class Roster:
    """Moves sequences from WAITING over RUNNING to FINISHED; schedulers decide when.

    Owns: every sequence that has not finished, and the queue of steps whose results have not
    been taken. With `pool` None (no paged KV) a sequence holds a slot only.
    """

    def __init__(self, pool: BlockPool | None, max_slots: int) -> None:
        self._pool = pool
        self._slots = SlotPool(max_slots)
        self._sequences: dict[str, Sequence] = {}
        self._running: dict[str, Sequence] = {}  # in admission order
        self._in_flight: deque[StepPlan] = deque()
        self._num_arrivals = 0

    @property
    def has_work(self) -> bool:
        return bool(self._sequences) or bool(self._in_flight)

    @property
    def unfinished(self) -> tuple[Sequence, ...]:
        """Running sequences with tokens left to schedule, in admission order."""
        return tuple(s for s in self._running.values() if s.num_remaining)

    def get(self, request_id: str) -> Sequence | None:
        return self._sequences.get(request_id)

    def live(self) -> tuple[Sequence, ...]:
        """Sequences with tokens left to schedule, running or not."""
        return tuple(s for s in self._sequences.values() if s.num_remaining)

    def add(self, request_id: str, num_tokens: int, priority: int) -> Sequence:
        """Register a WAITING sequence; `RequestError` if no amount of waiting can make it run."""
        if request_id in self._sequences:
            raise RequestError(
                f"request_id={request_id!r} is in use by a request that has not finished: "
                "give every request an id of its own"
            )
        if num_tokens < 1:
            raise RequestError(
                f"request {request_id!r} has num_tokens={num_tokens}: "
                "a prompt needs at least 1 token"
            )
        if self._pool is not None and self._blocks_for(num_tokens) > self._pool.num_blocks:
            raise RequestError(
                f"request {request_id!r} has {num_tokens} tokens and needs "
                f"{self._blocks_for(num_tokens)} KV blocks of {self._pool.block_size} tokens, but "
                f"the pool has num_blocks={self._pool.num_blocks} "
                f"({self._pool.num_blocks * self._pool.block_size} tokens): "
                "shorten the prompt or raise num_blocks"
            )
        sequence = Sequence(
            request_id=request_id,
            total=num_tokens,
            priority=priority,
            arrival=self._num_arrivals,
        )
        self._num_arrivals += 1
        self._sequences[request_id] = sequence
        return sequence

    def fit_once_settled(self, new: Iterable[Sequence]) -> bool:
        """Whether `new` can be admitted once every step in flight has completed.

        Looks at the plan so far only, so the answer does not depend on which results were taken.
        """
        holding = (*self.unfinished, *new)
        num_blocks = sum(self._blocks_for(s.total) for s in holding)
        return len(holding) <= self._slots.max_slots and (
            self._pool is None or num_blocks <= self._pool.num_blocks
        )

    def fit_now(self, new: Iterable[Sequence]) -> bool:
        """Whether `new` can be admitted with what is free at this moment."""
        new = tuple(new)
        num_blocks = sum(self._blocks_for(s.total) for s in new)
        return len(new) <= self._slots.num_free and (
            self._pool is None or self._pool.can_allocate(num_blocks)
        )

    def emit(self, plan: StepPlan) -> ScheduledStep:
        """Admit what is new in `plan`, advance every sequence in it and put it in flight."""
        allocations = {}
        for entry in plan.entries:
            sequence = self._sequences[entry.request_id]
            is_new = sequence.state is SequenceState.WAITING
            if is_new:
                self._admit(sequence)
            if entry.start != sequence.num_scheduled or entry.total != sequence.total:
                raise LedgerError(f"step {plan.index}: entry {entry} does not continue {sequence}")
            sequence.advance(entry.count)
            allocations[entry.request_id] = Allocation(
                slot=self._slots.slot(entry.request_id),
                blocks=() if self._pool is None else self._pool.table(entry.request_id),
                is_new=is_new,
            )
        self._in_flight.append(plan)
        return ScheduledStep(plan=plan, allocations=allocations)

    def complete(self, step: StepPlan) -> tuple[str, ...]:
        """Take the oldest step out of flight; see `Scheduler.complete`."""
        if not self._in_flight or self._in_flight[0] != step:
            oldest = self._in_flight[0] if self._in_flight else None
            raise LedgerError(
                f"complete(step {step.index}) is out of order: expected the oldest of "
                f"{len(self._in_flight)} steps in flight, {oldest}, got {step}"
            )
        self._in_flight.popleft()
        finished = []
        for entry in step.entries:
            sequence = self._sequences[entry.request_id]
            sequence.num_in_flight -= 1
            if sequence.num_in_flight == 0 and sequence.num_remaining == 0:
                self._retire(sequence)
                if not sequence.aborted:
                    finished.append(sequence.request_id)
        return tuple(finished)

    def abort(self, request_id: str) -> None:
        """See `Scheduler.abort`."""
        sequence = self._sequences.get(request_id)
        if sequence is None:
            return
        sequence.aborted = True
        if sequence.num_in_flight == 0:
            self._retire(sequence)

    def check_integrity(self) -> None:
        """Raise `LedgerError` unless holders, sequences and steps in flight agree."""
        self._slots.check_integrity()
        running = frozenset(self._running)
        states = frozenset(
            s.request_id for s in self._sequences.values() if s.state is SequenceState.RUNNING
        )
        if not running == states == self._slots.holders:
            raise LedgerError(
                f"running={sorted(running)}, in state running={sorted(states)} and "
                f"slot holders={sorted(self._slots.holders)} are not the same requests"
            )
        if self._pool is not None:
            self._pool.check_integrity()
            expected = {r: self._blocks_for(s.total) for r, s in self._running.items()}
            got = {r: len(self._pool.table(r)) for r in self._pool.holders}
            if expected != got:
                raise LedgerError(f"KV blocks by request: expected {expected}, held {got}")
        flying = Counter(e.request_id for step in self._in_flight for e in step.entries)
        counted = {r: s.num_in_flight for r, s in self._sequences.items() if s.num_in_flight}
        if dict(flying) != counted:
            raise LedgerError(
                f"steps in flight by request: the queue says {dict(flying)}, sequences {counted}"
            )

    def _blocks_for(self, num_tokens: int) -> int:
        return 0 if self._pool is None else self._pool.blocks_for(num_tokens)

    def _admit(self, sequence: Sequence) -> None:
        sequence.slot = self._slots.acquire(sequence.request_id)
        if self._pool is not None:
            self._pool.allocate(sequence.request_id, self._blocks_for(sequence.total))
        sequence.state = SequenceState.RUNNING
        self._running[sequence.request_id] = sequence

    def _retire(self, sequence: Sequence) -> None:
        if sequence.state is SequenceState.RUNNING:
            self._slots.release(sequence.request_id)
            if self._pool is not None:
                self._pool.release(sequence.request_id)
            del self._running[sequence.request_id]
        sequence.slot = None
        sequence.state = SequenceState.FINISHED
        del self._sequences[sequence.request_id]

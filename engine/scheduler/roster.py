"""The requests a scheduler knows, what they hold, and the steps in flight."""

from __future__ import annotations

from collections import Counter, deque

from engine.errors import LedgerError, RequestError
from engine.kv.blocks import BlockPool
from engine.kv.prefix import Prefix
from engine.plan import PlanEntry, StepPlan
from engine.scheduler.base import Allocation, ScheduledStep
from engine.scheduler.memory import MemoryWitness
from engine.scheduler.sequence import Sequence, SequenceState
from engine.scheduler.slots import SlotPool


class Roster:
    """Moves sequences from WAITING over RUNNING to FINISHED; schedulers decide when.

    Blocks are taken as tokens are scheduled and given up in the ledger with the last of them, at
    preemption or at abort. Steps in flight pin what they touch, so that a block is put to another
    use only after the results of all steps that touch it were taken. What is held therefore
    follows from the plan, and what must be waited for from the results.

    Owns: every sequence that has not finished, the steps whose results have not been taken, and
    the account of the memory. With `pool` None (no paged KV) a sequence holds a slot only.
    """

    def __init__(self, pool: BlockPool | None, max_slots: int) -> None:
        self.pool = pool
        self.slots = SlotPool(max_slots)
        self._sequences: dict[str, Sequence] = {}
        self._running: dict[str, Sequence] = {}  # in admission order
        self._in_flight: deque[ScheduledStep] = deque()
        self._num_arrivals = 0
        self._peak_blocks = self._short_steps = 0
        self._tables: dict[str, tuple[int, int]] = {}
        self._hits: Counter[str] = Counter()
        self._preemptions: Counter[str] = Counter()

    @property
    def has_work(self) -> bool:
        return bool(self._sequences) or bool(self._in_flight)

    @property
    def in_flight(self) -> int:
        """Steps whose results have not been taken."""
        return len(self._in_flight)

    @property
    def unfinished(self) -> tuple[Sequence, ...]:
        """Running sequences with tokens left to schedule, in admission order."""
        return tuple(s for s in self._running.values() if s.num_remaining)

    @property
    def memory(self) -> MemoryWitness:
        """The account of the run so far."""
        return MemoryWitness(
            num_blocks=0 if self.pool is None else self.pool.num_free + self.pool.num_held,
            peak_blocks=self._peak_blocks,
            tables=dict(self._tables),
            hit_tokens=dict(self._hits),
            preemptions=dict(self._preemptions),
            evictions=0 if self.pool is None else self.pool.num_evictions,
            short_steps=self._short_steps,
        )

    def get(self, request_id: str) -> Sequence | None:
        return self._sequences.get(request_id)

    def live(self) -> tuple[Sequence, ...]:
        """Sequences with tokens left to schedule, running or not."""
        return tuple(s for s in self._sequences.values() if s.num_remaining)

    def add(
        self, request_id: str, num_tokens: int, priority: int, prefix: Prefix | None = None
    ) -> Sequence:
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
        if self.pool is not None and self.blocks_for(num_tokens) > self.pool.num_blocks:
            raise RequestError(
                f"request {request_id!r} has {num_tokens} tokens and needs "
                f"{self.blocks_for(num_tokens)} KV blocks of {self.pool.block_size} tokens, but "
                f"the pool has num_blocks={self.pool.num_blocks} "
                f"({self.pool.num_blocks * self.pool.block_size} tokens): "
                "shorten the prompt or raise num_blocks"
            )
        sequence = Sequence(
            request_id=request_id,
            total=num_tokens,
            priority=priority,
            arrival=self._num_arrivals,
            prefix=prefix or Prefix(),
        )
        self._num_arrivals += 1
        self._sequences[request_id] = sequence
        return sequence

    def blocks_for(self, num_tokens: int) -> int:
        """KV blocks for so many tokens; 0 without paged KV."""
        return 0 if self.pool is None else self.pool.blocks_for(num_tokens)

    def emit(self, plan: StepPlan) -> ScheduledStep:
        """Preempt and admit as the plan says, advance its sequences and put it in flight."""
        for entry in plan.preempted:
            self._preempt(self._sequences[entry.request_id])
        # Every cached block is adopted before a fresh one is taken, as the step was drafted: a
        # fresh one may be a cached block that is free, and that a later entry begins behind.
        admitted = set()
        for entry in plan.entries:
            if not self._sequences[entry.request_id].is_running:
                self._admit(self._sequences[entry.request_id], entry)
                admitted.add(entry.request_id)
        allocations = {}
        for entry in plan.entries:
            sequence = self._sequences[entry.request_id]
            if entry.start != sequence.num_scheduled or entry.total != sequence.total:
                raise LedgerError(f"step {plan.index}: entry {entry} does not continue {sequence}")
            sequence.advance(entry.count)
            allocations[entry.request_id] = Allocation(
                slot=self.slots.slot(entry.request_id),
                blocks=self._grow(sequence),
                is_new=entry.request_id in admitted,
            )
        dropped = () if self.pool is None else self.pool.take_dropped()
        step = ScheduledStep(plan=plan, allocations=allocations, dropped=dropped)
        self._in_flight.append(step)
        self._settle(step)
        return step

    def complete(self, plan: StepPlan) -> tuple[str, ...]:
        """Take the oldest step out of flight; see `Scheduler.complete`."""
        oldest = self._in_flight[0].plan if self._in_flight else None
        if oldest != plan:
            raise LedgerError(
                f"complete(step {plan.index}) is out of order: expected the oldest of "
                f"{len(self._in_flight)} steps in flight, {oldest}, got {plan}"
            )
        step = self._in_flight.popleft()
        finished = []
        for entry in plan.entries:
            if self.pool is not None:
                self.pool.unpin(step.allocations[entry.request_id].blocks)
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
        if self.pool is not None:
            self.pool.release(request_id)
        if sequence.num_in_flight == 0:
            self._retire(sequence)

    def check_integrity(self) -> None:
        """Raise `LedgerError` unless holders, sequences and steps in flight agree."""
        self.slots.check_integrity()
        running = frozenset(self._running)
        states = frozenset(s.request_id for s in self._sequences.values() if s.is_running)
        if not running == states == self.slots.holders:
            raise LedgerError(
                f"running={sorted(running)}, in state running={sorted(states)} and "
                f"slot holders={sorted(self.slots.holders)} are not the same requests"
            )
        if self.pool is not None:
            self.pool.check_integrity()
            expected = {s.request_id: self.blocks_for(s.num_scheduled) for s in self.unfinished}
            got = {r: len(self.pool.table(r)) for r in self.pool.holders}
            if expected != got:
                raise LedgerError(f"KV blocks by request: expected {expected}, held {got}")
            pinned = Counter(
                b for s in self._in_flight for a in s.allocations.values() for b in a.blocks
            )
            if pinned != self.pool.pinned:
                raise LedgerError(f"pinned blocks: expected {pinned}, got {self.pool.pinned}")
        flying = Counter(e.request_id for step in self._in_flight for e in step.plan.entries)
        counted = {r: s.num_in_flight for r, s in self._sequences.items() if s.num_in_flight}
        if dict(flying) != counted:
            raise LedgerError(
                f"steps in flight by request: the queue says {dict(flying)}, sequences {counted}"
            )

    def _admit(self, sequence: Sequence, entry: PlanEntry) -> None:
        """Give a slot, and begin the table with the cached blocks the entry starts behind."""
        if entry.start and self.pool is not None:
            keys = sequence.prefix.hits(sequence.total, self.pool.block_size)
            blocks = self.pool.cached(keys[: entry.start // self.pool.block_size])
            self.pool.adopt(sequence.request_id, blocks)
            sequence.num_scheduled = len(blocks) * self.pool.block_size
            self._hits[sequence.request_id] += sequence.num_scheduled
        sequence.slot = self.slots.acquire(sequence.request_id)
        sequence.state = SequenceState.RUNNING
        self._running[sequence.request_id] = sequence

    def _grow(self, sequence: Sequence) -> tuple[int, ...]:
        """Its table, long enough for every token scheduled so far."""
        if self.pool is None:
            return ()
        name = sequence.request_id
        missing = self.blocks_for(sequence.num_scheduled) - len(self.pool.table(name))
        self.pool.extend(name, missing)
        return self.pool.table(name)

    def _settle(self, step: ScheduledStep) -> None:
        """Pin what the step touches, publish what it fills, give up what it was the last to use."""
        pool = self.pool
        if pool is None:
            return
        self._peak_blocks = max(self._peak_blocks, pool.num_held)
        for entry in step.plan.entries:
            sequence, blocks = (
                self._sequences[entry.request_id],
                step.allocations[entry.request_id].blocks,
            )
            pool.pin(blocks)
            full = sequence.num_scheduled // pool.block_size
            pool.publish(entry.request_id, sequence.prefix.keys[:full])
            if entry.finishes:
                self._tables[entry.request_id] = (entry.total, len(blocks))
        needed = [self.blocks_for(s.total) - len(pool.table(s.request_id)) for s in self.live()]
        self._short_steps += max(needed, default=0) > pool.num_free
        for entry in step.plan.entries:
            if entry.finishes:
                pool.release(entry.request_id)

    def _preempt(self, sequence: Sequence) -> None:
        sequence.go_back()
        self.slots.release(sequence.request_id)
        if self.pool is not None:
            self.pool.release(sequence.request_id)
        del self._running[sequence.request_id]
        self._preemptions[sequence.request_id] += 1

    def _retire(self, sequence: Sequence) -> None:
        if sequence.is_running:
            self.slots.release(sequence.request_id)
            del self._running[sequence.request_id]
        sequence.slot = None
        sequence.state = SequenceState.FINISHED
        del self._sequences[sequence.request_id]

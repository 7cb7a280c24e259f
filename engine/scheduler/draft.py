"""A step in the making: what it would hold, and whether memory allows it."""

from __future__ import annotations

from collections.abc import Iterable

from engine.plan import PlanEntry, StepPlan
from engine.scheduler.roster import Roster
from engine.scheduler.sequence import Sequence


class Draft:
    """Adds up what a step would take, on the ledger as the plan so far leaves it.

    The ledger already counts what finished, aborted and preempted requests gave up, whether or
    not their results have been taken. So what is placed never depends on that; `is_ready` does,
    and only delays the step.

    Owns: the entries, preemptions and reservations of one step. Changes nothing but itself.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster, self._pool = roster, roster.pool
        self.entries: list[PlanEntry] = []
        self.preempted: dict[str, PlanEntry] = {}
        self._admitted = 0
        self._taken = 0
        self._adopted: set[int] = set()

    @property
    def num_tokens(self) -> int:
        return sum(entry.count for entry in self.entries)

    def cached_tokens(self, sequence: Sequence) -> int:
        """Tokens of a waiting sequence that the prefix cache holds and its answer can spare."""
        return len(self._hits(sequence)) * (0 if self._pool is None else self._pool.block_size)

    def holds(self, sequence: Sequence, num_tokens: int) -> bool:
        """Whether the prefix cache holds exactly so many tokens, or more, in full blocks."""
        size = 1 if self._pool is None else self._pool.block_size
        return num_tokens % size == 0 and num_tokens <= self.cached_tokens(sequence)

    def preempt(self, victims: Iterable[Sequence]) -> None:
        """Take everything from running sequences."""
        self.preempted.update({victim.request_id: _lost(victim) for victim in victims})

    def place(
        self,
        sequence: Sequence,
        start: int,
        count: int,
        victims: Iterable[Sequence] = (),
        *,
        reserve: bool = True,
    ) -> bool:
        """Add tokens [start, start + count) of a sequence, if memory allows.

        Where it does not, `victims` are preempted one by one until it does; False, with nothing
        changed, when even all of them are not enough. `reserve`: who was preempted comes back only
        when all of it fits, else it would soon be preempted again.
        """
        end = start + count
        if reserve and sequence.num_preemptions and not sequence.is_running:
            end = sequence.total
        lost = dict(self.preempted)
        queue = iter(victims)
        while not self._fits(sequence, start, end, lost):
            victim = next(queue, None)
            if victim is None:
                return False
            lost[victim.request_id] = _lost(victim)
        self.preempted = lost
        hits = self._hits(sequence, start)
        self._taken += self._missing(sequence, start, start + count)
        self._adopted.update(hits)
        self._admitted += not sequence.is_running
        self.entries.append(
            PlanEntry(
                request_id=sequence.request_id, start=start, count=count, total=sequence.total
            )
        )
        return True

    def is_ready(self) -> bool:
        """Whether the step can be submitted now, or must wait for a result to be taken.

        A preempted request's memory may be read by steps in flight, so these come to an end first.
        """
        if self.preempted:
            return self._roster.in_flight == 0
        if self._admitted > self._roster.slots.num_free:
            return False
        pool = self._pool
        return pool is None or not pool.is_pinned(pool.next_free(self._taken, self._adopted))

    def plan(self, index: int) -> StepPlan:
        return StepPlan(
            index=index, entries=tuple(self.entries), preempted=tuple(self.preempted.values())
        )

    def _hits(self, sequence: Sequence, upto: int | None = None) -> tuple[int, ...]:
        if self._pool is None or sequence.is_running:
            return ()
        keys = sequence.prefix.hits(sequence.total, self._pool.block_size)
        found = self._pool.cached(keys)
        return found if upto is None else found[: upto // self._pool.block_size]

    def _missing(self, sequence: Sequence, start: int, end: int) -> int:
        """Fresh blocks for tokens up to `end`: beyond those held, or adopted at `start`."""
        held = self._roster.blocks_for(sequence.num_scheduled if sequence.is_running else start)
        return self._roster.blocks_for(end) - held

    def _fits(self, sequence: Sequence, start: int, end: int, lost: dict[str, PlanEntry]) -> bool:
        running = sum(s.request_id not in lost for s in self._roster.unfinished)
        running += self._admitted + (not sequence.is_running)
        if running > self._roster.slots.max_slots:
            return False
        if self._pool is None:
            return True
        need = self._missing(sequence, start, end)
        adopted = self._adopted | set(self._hits(sequence, start))
        free = self._pool.num_free_beside(adopted) + self._pool.num_freed_by(lost, adopted)
        return need <= free - self._taken


def _lost(victim: Sequence) -> PlanEntry:
    return PlanEntry(
        request_id=victim.request_id, start=victim.num_scheduled, count=0, total=victim.total
    )

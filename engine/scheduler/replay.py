"""A recorded plan, run again."""

from __future__ import annotations

from collections.abc import Sequence as Steps
from typing import NoReturn

from engine.errors import PlanError
from engine.kv.blocks import BlockPool
from engine.kv.prefix import Prefix
from engine.plan import PlanEntry, StepPlan
from engine.scheduler.base import ScheduledStep
from engine.scheduler.draft import Draft
from engine.scheduler.memory import MemoryWitness
from engine.scheduler.roster import Roster
from engine.scheduler.sequence import Sequence


class ReplayScheduler:
    """Emits exactly the recorded steps, so that two configurations are held to the same batches.

    The plan fixes order, preemptions and prefix hits, so priorities are not looked at. Every
    request of a step must have been added, with the recorded length, before that step is scheduled;
    the first mismatch is a `PlanError` that names step, request, what was expected and what was
    got. There is work until the whole plan has run.

    Owns: the position in the plan. Implements `Scheduler`.
    """

    def __init__(self, plan: Steps[StepPlan], pool: BlockPool | None, max_slots: int) -> None:
        _check_consistent(plan)
        self._plan = tuple(plan)
        self._totals = {e.request_id: e.total for step in plan for e in step.entries}
        self._roster = Roster(pool, max_slots)
        self._position = 0

    @property
    def has_work(self) -> bool:
        return self._position < len(self._plan) or self._roster.has_work

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
        if request_id not in self._totals:
            raise PlanError(
                f"the plan has no step for request {request_id!r}: expected one of "
                f"{sorted(self._totals)}; record a plan for these requests or schedule freely"
            )
        if num_tokens != self._totals[request_id]:
            raise PlanError(
                f"request {request_id!r}: the plan expected total={self._totals[request_id]}, "
                f"got num_tokens={num_tokens}; record a plan for these requests"
            )
        self._roster.add(request_id, num_tokens, priority, prefix)

    def schedule(self) -> ScheduledStep | None:
        if self._position == len(self._plan):
            self._check_nothing_left()
            return None
        step = self._plan[self._position]
        draft = Draft(self._roster)
        victims = [self._sequence(step, entry) for entry in step.preempted]
        for lost, victim in zip(step.preempted, victims, strict=True):
            if not victim.is_running or victim.num_scheduled != lost.start:
                raise PlanError(
                    f"step {step.index}, request {lost.request_id!r}: expected to preempt it with "
                    f"{lost.start} tokens computed, got {victim.num_scheduled}"
                )
        draft.preempt(victims)
        for entry in step.entries:
            sequence = self._sequence(step, entry)
            self._check_start(step, entry, sequence, draft)
            if not draft.place(sequence, entry.start, entry.count, reserve=False):
                self._refuse(step, sequence)
        if not draft.is_ready():
            return None
        self._position += 1
        return self._roster.emit(step)

    def _sequence(self, step: StepPlan, entry: PlanEntry) -> Sequence:
        sequence = self._roster.get(entry.request_id)
        if sequence is None or sequence.aborted:
            got = "no such request" if sequence is None else "an aborted request"
            raise PlanError(
                f"step {step.index}, request {entry.request_id!r}: "
                f"expected a request of {entry.total} tokens, got {got}; "
                "add it before the step that runs it"
            )
        return sequence

    def _check_start(
        self, step: StepPlan, entry: PlanEntry, sequence: Sequence, draft: Draft
    ) -> None:
        where = f"step {step.index}, request {entry.request_id!r}"
        if sequence.is_running and sequence.num_scheduled != entry.start:
            raise PlanError(
                f"{where}: expected start={entry.start}, got {sequence.num_scheduled} tokens "
                "scheduled so far; the request was added again in the middle of its plan"
            )
        if not sequence.is_running and not draft.holds(sequence, entry.start):
            raise PlanError(
                f"{where}: expected the prefix cache to hold its first {entry.start} tokens, got "
                f"{draft.cached_tokens(sequence)}; replay with the prefix_cache, block_size and "
                "cache_salt that the plan was recorded with"
            )

    def _refuse(self, step: StepPlan, sequence: Sequence) -> NoReturn:
        pool = self._roster.pool
        num_blocks = "no paged KV" if pool is None else f"{pool.num_blocks} blocks"
        raise PlanError(
            f"step {step.index}, request {sequence.request_id!r}: expected room beside "
            f"{[s.request_id for s in self._roster.unfinished]}, got max_slots="
            f"{self._roster.slots.max_slots} and {num_blocks}; give at least what the plan was "
            "recorded with"
        )

    def complete(self, step: StepPlan) -> tuple[str, ...]:
        return self._roster.complete(step)

    def abort(self, request_id: str) -> None:
        self._roster.abort(request_id)

    def check_integrity(self) -> None:
        self._roster.check_integrity()

    def _check_nothing_left(self) -> None:
        left = self._roster.live()
        if left:
            raise PlanError(
                f"the plan ends after {len(self._plan)} steps and leaves tokens over: "
                + ", ".join(
                    f"request {s.request_id!r} expected {s.total} tokens, got {s.num_scheduled}"
                    for s in left
                )
                + "; record a whole plan"
            )


def _check_consistent(plan: Steps[StepPlan]) -> None:
    """A request's entries follow each other, at most one a step, until it is preempted."""
    last: dict[str, PlanEntry] = {}
    totals: dict[str, int] = {}
    for step in plan:
        seen: set[str] = set()
        if not step.entries:
            raise PlanError(f"step {step.index}: expected at least one entry, got none")
        for entry in step.preempted:
            before = last.pop(entry.request_id, None)
            if before is None or (before.end, before.total) != (entry.start, entry.total):
                raise PlanError(
                    f"step {step.index}, request {entry.request_id!r}: expected to preempt a "
                    f"request that was last seen at {before}, got {entry}"
                )
        for entry in step.entries:
            where = f"step {step.index}, request {entry.request_id!r}"
            before = last.get(entry.request_id)
            # A first entry may start behind what the prefix cache holds, never at its own end.
            start = entry.start if before is None else before.end
            total = totals.setdefault(entry.request_id, entry.total)
            if entry.request_id in seen:
                raise PlanError(f"{where}: expected one entry a step, got a second one")
            if (entry.start, entry.total) != (start, total):
                raise PlanError(
                    f"{where}: expected start={start}, total={total}, "
                    f"got start={entry.start}, total={entry.total}"
                )
            if entry.count < 1 or entry.start < 0 or entry.end > total:
                raise PlanError(
                    f"{where}: expected count between 1 and the {total - start} tokens left, "
                    f"got count={entry.count}"
                )
            seen.add(entry.request_id)
            last[entry.request_id] = entry

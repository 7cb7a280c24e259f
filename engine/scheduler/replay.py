"""A recorded plan, run again."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import PlanError
from engine.kv.blocks import BlockPool
from engine.plan import PlanEntry, StepPlan
from engine.scheduler.base import ScheduledStep
from engine.scheduler.roster import Roster


class ReplayScheduler:
    """Emits exactly the recorded steps, so that two configurations are held to the same batches.

    The plan fixes the order, so priorities are not looked at. Every request of a step must have
    been added, with the recorded length, before that step is scheduled; the first mismatch is a
    `PlanError` that names step, request, what was expected and what was got. There is work until
    the whole plan has run.

    Owns: the position in the plan. Implements `Scheduler`.
    """

    def __init__(self, plan: Sequence[StepPlan], pool: BlockPool | None, max_slots: int) -> None:
        _check_consistent(plan)
        self._plan = tuple(plan)
        self._totals = {e.request_id: e.total for step in plan for e in step.entries}
        self._roster = Roster(pool, max_slots)
        self._pool = pool
        self._max_slots = max_slots
        self._position = 0

    @property
    def has_work(self) -> bool:
        return self._position < len(self._plan) or self._roster.has_work

    def add(self, request_id: str, num_tokens: int, *, priority: int = 0) -> None:
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
        self._roster.add(request_id, num_tokens, priority)

    def schedule(self) -> ScheduledStep | None:
        if self._position == len(self._plan):
            self._check_nothing_left()
            return None
        step = self._plan[self._position]
        new = []
        for entry in step.entries:
            sequence = self._roster.get(entry.request_id)
            if sequence is None or sequence.aborted:
                got = "no such request" if sequence is None else "an aborted request"
                raise PlanError(
                    f"step {step.index}, request {entry.request_id!r}: "
                    f"expected a request of {entry.total} tokens, got {got}; "
                    "add it before the step that runs it"
                )
            if sequence.num_scheduled != entry.start:
                raise PlanError(
                    f"step {step.index}, request {entry.request_id!r}: expected "
                    f"start={entry.start}, got {sequence.num_scheduled} tokens scheduled so far; "
                    "the request was added again in the middle of its plan"
                )
            if entry.start == 0:
                new.append(sequence)
        if not self._roster.fit_once_settled(new):
            num_blocks = "no paged KV" if self._pool is None else f"{self._pool.num_blocks} blocks"
            raise PlanError(
                f"step {step.index}, requests {[s.request_id for s in new]}: expected room beside "
                f"{[s.request_id for s in self._roster.unfinished]}, got max_slots="
                f"{self._max_slots} and {num_blocks}; give at least what the plan was recorded with"
            )
        if not self._roster.fit_now(new):
            return None
        self._position += 1
        return self._roster.emit(step)

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


def _check_consistent(plan: Sequence[StepPlan]) -> None:
    """Every request's entries follow each other from 0, at most one a step, with one total."""
    last: dict[str, PlanEntry] = {}
    for step in plan:
        seen: set[str] = set()
        if not step.entries:
            raise PlanError(f"step {step.index}: expected at least one entry, got none")
        for entry in step.entries:
            where = f"step {step.index}, request {entry.request_id!r}"
            before = last.get(entry.request_id)
            start, total = (0, entry.total) if before is None else (before.end, before.total)
            if entry.request_id in seen:
                raise PlanError(f"{where}: expected one entry a step, got a second one")
            if (entry.start, entry.total) != (start, total):
                raise PlanError(
                    f"{where}: expected start={start}, total={total}, "
                    f"got start={entry.start}, total={entry.total}"
                )
            if entry.count < 1 or entry.end > total:
                raise PlanError(
                    f"{where}: expected count between 1 and the {total - start} tokens left, "
                    f"got count={entry.count}"
                )
            seen.add(entry.request_id)
            last[entry.request_id] = entry

"""The step plan: who runs which tokens in which step. The unit that is recorded and replayed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry:
    """Tokens [start, start + count) of a prompt of `total` tokens.

    The first entry of a prompt starts at 0, or behind what the prefix cache holds of it.
    """

    request_id: str
    start: int
    count: int
    total: int

    @property
    def end(self) -> int:
        return self.start + self.count

    @property
    def finishes(self) -> bool:
        """Whether this piece holds the prompt's last token. Known on the host, never synced."""
        return self.end == self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """One step's batch: entries in batch order. Immutable; built in one call.

    `preempted`: requests that gave up their memory before this step, each as an entry of count 0
    whose `start` is the number of computed tokens it lost. They begin again later.
    """

    index: int
    entries: tuple[PlanEntry, ...]
    preempted: tuple[PlanEntry, ...] = ()

    @property
    def num_tokens(self) -> int:
        return sum(entry.count for entry in self.entries)

    @property
    def finishes_any(self) -> bool:
        return any(entry.finishes for entry in self.entries)


def plan_to_json(plan: Sequence[StepPlan]) -> list[list[list[int | str]]]:
    """Plan as plain lists: step -> entry -> [request_id, start, count, total].

    Preemptions come first in their step, with a count of 0.
    """
    return [
        [[e.request_id, e.start, e.count, e.total] for e in (*step.preempted, *step.entries)]
        for step in plan
    ]


def plan_from_json(data: Sequence[Sequence[Sequence[int | str]]]) -> tuple[StepPlan, ...]:
    """Inverse of `plan_to_json`."""
    steps = []
    for index, step in enumerate(data):
        entries = [
            PlanEntry(request_id=str(r), start=int(s), count=int(c), total=int(t))
            for r, s, c, t in step
        ]
        steps.append(
            StepPlan(
                index=index,
                entries=tuple(e for e in entries if e.count),
                preempted=tuple(e for e in entries if not e.count),
            )
        )
    return tuple(steps)


def plan_digest(plan: Sequence[StepPlan]) -> str:
    """Hex digest two runs must share before they may be held to the same bits (law 6)."""
    return hashlib.sha256(json.dumps(plan_to_json(plan)).encode()).hexdigest()[:16]


def num_chunks(plan: Sequence[StepPlan]) -> dict[str, int]:
    """Request id -> in how many pieces the plan runs its prompt."""
    return dict(Counter(entry.request_id for step in plan for entry in step.entries))

"""The step plan: who runs which tokens in which step. The unit that is recorded and replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry:
    """Tokens [start, start + count) of a prompt of `total` tokens."""

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
    """One step's batch: entries in batch order. Immutable; built in one call."""

    index: int
    entries: tuple[PlanEntry, ...]

    @property
    def num_tokens(self) -> int:
        return sum(entry.count for entry in self.entries)

    @property
    def finishes_any(self) -> bool:
        return any(entry.finishes for entry in self.entries)


def plan_to_json(plan: Sequence[StepPlan]) -> list[list[list[int | str]]]:
    """Plan as plain lists: step -> entry -> [request_id, start, count, total]."""
    return [[[e.request_id, e.start, e.count, e.total] for e in step.entries] for step in plan]


def plan_from_json(data: Sequence[Sequence[Sequence[int | str]]]) -> tuple[StepPlan, ...]:
    """Inverse of `plan_to_json`."""
    return tuple(
        StepPlan(
            index=index,
            entries=tuple(
                PlanEntry(request_id=str(r), start=int(s), count=int(c), total=int(t))
                for r, s, c, t in step
            ),
        )
        for index, step in enumerate(data)
    )


def plan_digest(plan: Sequence[StepPlan]) -> str:
    """Hex digest two runs must share before they may be held to the same bits (law 6)."""
    return hashlib.sha256(json.dumps(plan_to_json(plan)).encode()).hexdigest()[:16]


def num_chunks(plan: Sequence[StepPlan]) -> dict[str, int]:
    """Request id -> in how many pieces the plan runs its prompt."""
    counts: dict[str, int] = {}
    for step in plan:
        for entry in step.entries:
            counts[entry.request_id] = counts.get(entry.request_id, 0) + 1
    return counts

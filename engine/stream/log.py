"""What every stream of one device did, in one numbering.

Overlap is judged by these numbers and never by a clock, so the answer is the same on a loaded
machine, under a debugger and in a replay.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field

from engine.errors import LedgerError


@dataclass(slots=True, eq=False)
class Operation:
    """One entry of a stream. `submitted` and `completed` come from the device's one counter."""

    number: int
    """Position among the run's submissions, from 0."""
    stream: str
    rank: int
    step: int
    name: str
    cost: int
    """Kernels the operation stands for."""
    submitted: int
    completed: int | None = None
    """None until it ran; stays None when it raised or was skipped after a failure."""

    @property
    def done(self) -> bool:
        return self.completed is not None

    def __str__(self) -> str:
        return f"operation {self.name!r} of step {self.step} on {self.stream}"


@dataclass(slots=True)
class _StepSpan:
    first_submitted: int
    last_completed: int = -1
    num_open: int = 0


@dataclass(slots=True)
class _RankTotals:
    num_operations: int = 0
    cost: int = 0
    steps: dict[int, _StepSpan] = field(default_factory=dict)
    """In order of first submission, so their `first_submitted` values ascend."""


class OperationLog:
    """Owns: the numbered history of one run. Not locked; the device serialises its calls."""

    def __init__(self) -> None:
        self._counter = 0
        self._operations: list[Operation] = []
        self._ranks: dict[int, _RankTotals] = {}

    def submit(self, *, stream: str, rank: int, step: int, name: str, cost: int) -> Operation:
        """Number a submission."""
        operation = Operation(
            number=len(self._operations),
            stream=stream,
            rank=rank,
            step=step,
            name=name,
            cost=cost,
            submitted=self._next(),
        )
        self._operations.append(operation)
        steps = self._ranks.setdefault(rank, _RankTotals()).steps
        span = steps.setdefault(step, _StepSpan(first_submitted=operation.submitted))
        span.num_open += 1
        return operation

    def complete(self, operation: Operation) -> None:
        """Number a completion.

        Raises:
            LedgerError: the operation completed before: something ran it twice.
        """
        if operation.completed is not None:
            raise LedgerError(f"{operation} completed twice: first at {operation.completed}")
        operation.completed = self._next()
        totals = self._ranks[operation.rank]
        totals.num_operations += 1
        totals.cost += operation.cost
        span = totals.steps[operation.step]
        span.num_open -= 1
        span.last_completed = operation.completed

    def clear(self) -> None:
        """Start the next run's history at 0."""
        self._counter = 0
        self._operations = []
        self._ranks = {}

    @property
    def operations(self) -> tuple[Operation, ...]:
        """In order of submission."""
        return tuple(self._operations)

    def num_operations(self, rank: int) -> int:
        """Operations of the rank that ran to their end."""
        return self._ranks.get(rank, _RankTotals()).num_operations

    def total_cost(self, rank: int) -> int:
        """Sum of the costs of the operations that ran to their end."""
        return self._ranks.get(rank, _RankTotals()).cost

    def steps(self, rank: int) -> tuple[int, ...]:
        """Steps the rank submitted anything for, in order of first submission."""
        return tuple(self._ranks.get(rank, _RankTotals()).steps)

    def submitted(self, step: int, rank: int) -> int:
        """Number of the step's first submission on this rank."""
        return self._span(step, rank).first_submitted

    def completed(self, step: int, rank: int) -> int | None:
        """Number of the step's last completion on this rank; None while any part is open."""
        span = self._span(step, rank)
        return None if span.num_open else span.last_completed

    def lookahead(self, rank: int, output_steps: Collection[int]) -> int:
        """Most steps first submitted after an output-bearing step and before it completed.

        0 means that the rank never ran ahead of a result. Steps in `output_steps` that the rank
        submitted nothing for count for nothing.
        """
        spans = self._ranks.get(rank, _RankTotals()).steps
        firsts = [span.first_submitted for span in spans.values()]
        most = 0
        for step in output_steps:
            span = spans.get(step)
            if span is None:
                continue
            end = self._counter if span.num_open else span.last_completed
            ahead = bisect_left(firsts, end) - bisect_right(firsts, span.first_submitted)
            most = max(most, ahead)
        return most

    def _span(self, step: int, rank: int) -> _StepSpan:
        steps = self._ranks.get(rank, _RankTotals()).steps
        if step not in steps:
            raise LedgerError(f"step={step} was never submitted on rank {rank}: it has {[*steps]}")
        return steps[step]

    def _next(self) -> int:
        number = self._counter
        self._counter += 1
        return number

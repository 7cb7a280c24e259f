"""What one rank did during one run, as it and its mechanisms counted it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from engine.attention import AttentionCalls
from engine.collectives import AllReduce
from engine.execution.base import Execution
from engine.plan import StepPlan
from engine.stream.base import Device
from engine.witness import RankWitness


class RankAccount:
    """Owns: one rank's counts of the run under way, and what counters that never stop said before.

    Public attributes: `attention`, whose functions count themselves, and `num_threads`, as seen
    from inside the compute stream.
    """

    def __init__(
        self, rank: int, device: Device, execution: Execution, all_reduce: AllReduce | None
    ) -> None:
        self._rank, self._device = rank, device
        self._execution, self._all_reduce = execution, all_reduce
        self.attention = AttentionCalls()
        self.begin()

    def begin(self) -> None:
        """Forget the last run; the device must be drained."""
        self._steps: list[StepPlan] = []
        self._chunks: Counter[str] = Counter()
        self._padded: list[int] = []
        self.num_threads = 0
        self._calls_before = self._execution.compiled_calls
        self._stages_before = self._execution.eager_stages
        self._sums_before = self._sums()
        self._replays_before = dict(self._execution.replays)
        self.attention.begin()

    def submitted(self, plan: StepPlan, rows: int) -> None:
        """A step was begun; `rows`: what it is padded to."""
        self._steps.append(plan)
        self._padded.append(rows)

    def pooled(self, plan: StepPlan) -> None:
        """The step's pieces were pooled. Called where that happened, on the compute stream."""
        self._chunks.update(entry.request_id for entry in plan.entries)

    @property
    def last_step(self) -> int:
        """Index of the step begun last; 0 before the first."""
        return self._steps[-1].index if self._steps else 0

    @property
    def chunks(self) -> Mapping[str, int]:
        """Request id -> pieces pooled on this rank so far in this run."""
        return dict(self._chunks)

    @property
    def padded_tokens(self) -> Sequence[int]:
        """Rows of each step."""
        return tuple(self._padded)

    def witness(self, *, staging_slots: int) -> RankWitness:
        """The whole account, from the operation log and the execution's counters."""
        log, execution = self._device.log, self._execution
        outputs = {plan.index for plan in self._steps if plan.finishes_any}
        executed = [p for p in self._steps if log.completed(p.index, self._rank) is not None]
        before = self._replays_before
        replays = {rows: n - before.get(rows, 0) for rows, n in execution.replays.items()}
        reductions, summands = self._sums()
        return RankWitness(
            rank=self._rank,
            pid=os.getpid(),
            steps=len(executed),
            operations=log.num_operations(self._rank),
            cost=log.total_cost(self._rank),
            compiled_calls=execution.compiled_calls - self._calls_before,
            graphs=execution.graphs,
            eager_stages=execution.eager_stages - self._stages_before,
            reductions=reductions - self._sums_before[0],
            summands=summands - self._sums_before[1],
            replays=sum(replays.values()),
            buckets=tuple(sorted(rows for rows, count in replays.items() if count)),
            padding_rows=sum(self._padded) - sum(plan.num_tokens for plan in self._steps),
            lookahead=log.lookahead(self._rank, outputs),
            staging_slots=staging_slots,
            attention_calls=self.attention.by_backend,
            num_threads=self.num_threads,
            hazards=self._device.hazards,
        )

    def _sums(self) -> tuple[int, int]:
        sums = self._all_reduce
        return (0, 0) if sums is None else (sums.reductions, sums.summands)

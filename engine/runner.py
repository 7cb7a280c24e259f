"""One rank, one step: host staging -> device inputs -> blocks -> pooling -> copy to host."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import partial

import torch

from engine.account import RankAccount
from engine.collectives import AllReduce, advance_together
from engine.config import EngineConfig
from engine.determinism import attest_flags
from engine.execution.base import Execution, Frame
from engine.execution.queue import StepQueue
from engine.handle import RunnerHandle, result_of
from engine.inputs import InputArrays
from engine.layers.linear import MIN_ROWS
from engine.links import Link
from engine.memory import RankMemory, RunnerLimits
from engine.models.base import AttentionMetadata
from engine.plan import StepPlan
from engine.pooling.base import PoolingBatch
from engine.pooling.dispatcher import Pooler
from engine.request import PoolingRequest, PoolingResult
from engine.scheduler.base import ScheduledStep
from engine.stage import Stage
from engine.stream.base import Device, Event
from engine.taps import Taps
from engine.witness import RankWitness


class Runner:
    """Owns: one rank's memory, streams and account of the run.

    The seams a plug-in may replace, each a method the step needs anyway: `fence_inputs`,
    `await_send`, `preempt`, `send`, `post_step`, `copy_to_host`, `stage`, and on `pooler` those
    named there.
    """

    def __init__(
        self,
        *,
        config: EngineConfig,
        limits: RunnerLimits,
        model: Stage,
        execution: Execution,
        device: Device,
        rank: int,
        receive_from: Link | None,
        send_to: Link | None,
        all_reduce: AllReduce | None,
        pooler: Pooler | None,
    ) -> None:
        """`pooler`: the rank that answers has one; `all_reduce`: None with one tensor rank."""
        self.config, self.limits, self.model, self.rank = config, limits, model, rank
        self.all_reduce = all_reduce
        self.execution, self.device, self.pooler = execution, device, pooler
        self.host = f"host@{rank}"
        self.compute = device.stream(f"compute@{rank}")
        self.copy = device.stream(f"copy@{rank}")
        self._receive_from, self._send_to = receive_from, send_to
        self.taps = Taps()
        self.account = RankAccount(rank, device, execution, all_reduce)
        self._memory = memory = RankMemory(config, limits, model, device, rank)
        self.staging, self.inputs, self.counters = memory.staging, memory.inputs, memory.counters
        self.hidden, self.received, self.layers = memory.hidden, memory.received, memory.layers
        with torch.inference_mode():
            execution.prepare(device, rank, self.layers, memory.idle_frame())
        self.begin_run(taps=False)

    @property
    def is_first(self) -> bool:
        return self._receive_from is None

    @property
    def is_last(self) -> bool:
        return self._send_to is None

    @property
    def answers(self) -> bool:
        """Whether this rank pools; of several tensor ranks of the last stage one does."""
        return self.pooler is not None

    def begin_run(self, *, taps: bool) -> None:
        """Forget the last run's account; the device must be drained."""
        if self.pooler is not None:
            self.pooler.reset()  # a run that raised may have left chunks behind
        self._underway: set[str] = set()
        self.account.begin()
        self.taps.begin(enabled=taps)

    # -- one step ---------------------------------------------------------------------------

    def submit(self, step: ScheduledStep, requests: Mapping[str, PoolingRequest]) -> RunnerHandle:
        """Queue one step on this rank's streams. Returns before the device has run it."""
        return advance_together([self.submission(step, requests)])[0]

    def submission(
        self, step: ScheduledStep, requests: Mapping[str, PoolingRequest]
    ) -> Generator[None, None, RunnerHandle]:
        """`submit` in parts: stops wherever the tensor ranks of this process must draw level."""
        plan = step.plan
        frame = Frame()
        rows = self.padded_rows(plan.num_tokens)
        self.account.submitted(plan, rows)
        self.await_send()
        self.preempt(plan)
        if self.config.poison:
            self._memory.poison(self.compute, step)
        staging = self.staging.acquire(self.host)
        self.stage(staging, step, requests, rows)
        self._load_inputs(plan, staging)
        self._submit_entry(plan, frame, rows)
        yield from self._submit_blocks(plan, frame, rows)
        self._submit_exit(plan, frame, rows)
        if not self.is_last:
            self.send(plan, rows)
        elif self.answers:
            self._submit_pooling(plan, frame, requests)
        self.post_step(plan)
        handle = self.copy_to_host(plan, frame, requests)
        self.device.end_step(plan.index, self.host)
        return handle

    def padded_rows(self, num_tokens: int) -> int:
        """Rows every product of the step has: one-row products take another kernel, and a graph
        was recorded for some row counts only."""
        least = MIN_ROWS if self.config.execution.batch_invariant else 2
        return self.execution.padded_rows(max(num_tokens, least))

    def preempt(self, plan: StepPlan) -> None:
        """Forget the chunks of requests that begin again, after every step already submitted."""
        for entry in plan.preempted:
            self.abort(entry.request_id)

    def await_send(self) -> None:
        """Top of the step: the last send must have left before its buffer is written again."""
        event = self._send_to.sent() if self._send_to is not None else None
        if event is not None:
            self.compute.wait(event)

    def stage(
        self,
        staging: InputArrays,
        step: ScheduledStep,
        requests: Mapping[str, PoolingRequest],
        rows: int,
    ) -> None:
        """The host writes the step's inputs, now."""
        self.device.host_access(
            self.host, "stage inputs", step=step.plan.index, writes=(staging.buffer,)
        )
        staging.stage(
            step.plan,
            requests,
            step.allocations,
            block_size=self.config.cache.block_size,
            padded_tokens=rows,
        )

    def _load_inputs(self, plan: StepPlan, staging: InputArrays) -> None:
        self.compute.submit(
            "load inputs",
            lambda: self.inputs.load(staging),
            step=plan.index,
            reads=(staging.buffer,),
            writes=(self.inputs.buffer,),
        )
        self.fence_inputs(staging, plan)

    def fence_inputs(self, staging: InputArrays, plan: StepPlan) -> None:
        """Order the reuse of the staging slot after its last reader, output or not (rule 3)."""
        del plan
        self.staging.fence(staging, self.compute.record())

    def _queue(self, plan: StepPlan, rows: int) -> StepQueue:
        return StepQueue(
            stream=self.compute,
            step=plan.index,
            rows=rows,
            inputs=self.inputs.buffer,
            all_reduce=self.all_reduce,
            attention=self.account.attention,
        )

    def _submit_entry(self, plan: StepPlan, frame: Frame, rows: int) -> None:
        num_seqs = len(plan.entries)

        def positions() -> None:
            self.account.num_threads = torch.get_num_threads()
            inputs, counters = self.inputs, self.counters.tensor
            slots = inputs["state_slots"][:num_seqs]
            # A prompt's own counter, unless it begins: at 0, or behind what the prefix cache holds.
            known = counters[slots]
            is_new = inputs["is_new"][:num_seqs]
            starts = known * (1 - is_new) + inputs["first_positions"][:num_seqs] * is_new
            counters[slots] = starts
            sequence = inputs["token_to_seq"][:rows]
            first_row = inputs["row_offsets"][sequence]
            row = torch.arange(rows, device=starts.device)
            known = starts[sequence.clamp(max=num_seqs - 1)]
            # A device cannot raise: the host validated lengths at admission.
            frame.positions = (known + row - first_row).clamp_(0, self.limits.max_model_len - 1)
            frame.cos, frame.sin = self.model.rotary(frame.positions)
            context = torch.zeros_like(inputs["state_slots"])
            context[:num_seqs] = starts
            frame.meta = AttentionMetadata(
                row_offsets=inputs["row_offsets"],
                context_starts=context,
                block_tables=inputs["block_tables"],
                slot_mapping=inputs["slot_mapping"][:rows],
            )

        self.compute.submit(
            "positions",
            positions,
            step=plan.index,
            reads=(self.inputs.buffer,),
            writes=(self.counters,),
        )
        if self._receive_from is None:

            def embed() -> None:
                frame.x = self.model.embed(
                    self.inputs["token_ids"][:rows],
                    self.inputs["type_ids"][:rows],
                    frame.positions,
                )
                self._tap(plan, 0, frame.x)

            self._queue(plan, rows).submit("embed", embed)
        else:
            self._receive_from.receive(self.compute, self.received, rows, step=plan.index)

            def enter() -> None:
                frame.x = self.received.tensor[:rows]

            self.compute.submit("enter stage", enter, step=plan.index, reads=(self.received,))

    def _submit_blocks(self, plan: StepPlan, frame: Frame, rows: int) -> Iterator[None]:
        queue = self._queue(plan, rows)
        tap = partial(self._tap, plan) if self.taps.enabled else None
        yield from self.execution.submit_stage(queue, self.layers, frame, tap)

    def _tap(self, plan: StepPlan, layer: int, x: torch.Tensor) -> None:
        if self.taps.enabled:
            self.taps.capture(layer, plan.index, plan.entries, x)

    def _submit_exit(self, plan: StepPlan, frame: Frame, rows: int) -> None:
        """The stage's output goes to its persistent buffer: sends and poolers read it there."""

        def leave() -> None:
            x = self.model.final_norm(frame.x) if self.is_last else frame.x
            self.hidden.tensor[:rows].copy_(x)

        # What x is, a tensor of the step's own or a graph's buffer, is known when this runs.
        self.compute.submit(
            "leave stage",
            leave,
            step=plan.index,
            reads=lambda: [frame.x],
            writes=(self.hidden,),
        )

    def send(self, plan: StepPlan, rows: int) -> None:
        """Queue the hidden states for the next stage; before the post-step (rule 4)."""
        assert self._send_to is not None, self.rank
        self._send_to.send(self.compute, self.hidden, rows, step=plan.index)

    def _submit_pooling(
        self, plan: StepPlan, frame: Frame, requests: Mapping[str, PoolingRequest]
    ) -> None:
        pooler = self.pooler
        assert pooler is not None, self.rank
        step_requests = {e.request_id: requests[e.request_id] for e in plan.entries}
        underway = self._underway_after(plan) if self.config.check_ledgers else None

        def pool() -> None:
            row_offsets = self.inputs["row_offsets"][: len(plan.entries) + 1]
            batch = PoolingBatch.of_step(plan, step_requests, row_offsets)
            frame.pooled = pooler.pool(self.hidden.tensor[: plan.num_tokens], batch)
            self.account.pooled(plan)
            if underway is not None:
                pooler.check_integrity(underway)

        self.compute.submit("pool", pool, step=plan.index, reads=(self.inputs.buffer, self.hidden))

    def _underway_after(self, plan: StepPlan) -> frozenset[str]:
        """Who has run a piece and not the last one, once this step is through."""
        for entry in plan.entries:
            (self._underway.discard if entry.finishes else self._underway.add)(entry.request_id)
        return frozenset(self._underway)

    def post_step(self, plan: StepPlan) -> None:
        """Advance the device-side counters: every stage, every step, output or not (rule 4)."""
        num_seqs = len(plan.entries)

        def advance() -> None:
            slots = self.inputs["state_slots"][:num_seqs]
            self.counters.tensor[slots] += self.inputs["counts"][:num_seqs]

        self.compute.submit(
            "advance counters",
            advance,
            step=plan.index,
            reads=(self.inputs.buffer,),
            writes=(self.counters,),
        )

    def copy_to_host(
        self, plan: StepPlan, frame: Frame, requests: Mapping[str, PoolingRequest]
    ) -> RunnerHandle:
        """Queue the copy of finished rows on the copy stream and return the step's handle."""
        if not self.answers or not plan.finishes_any:
            return RunnerHandle(self.host, plan, self._step_events())
        self.copy.wait(self.compute.record())
        outputs: list[PoolingResult] = []
        step_requests = {e.request_id: requests[e.request_id] for e in plan.entries}

        def copy() -> None:
            outputs.extend(
                result_of(pooled, step_requests[pooled.request_id]) for pooled in frame.pooled
            )

        self.copy.submit(
            "copy to host", copy, step=plan.index, reads=lambda: [p.rows for p in frame.pooled]
        )
        handle = RunnerHandle(self.host, plan, (self.copy.record(),))
        handle.outputs = outputs
        return handle

    def _step_events(self) -> tuple[Event, ...]:
        """Fences of all this rank does for the step, its send included."""
        sent = self._send_to.sent() if self._send_to is not None else None
        computed = self.compute.record()
        return (computed,) if sent is None else (computed, sent)

    # -- accounts ---------------------------------------------------------------------------

    def abort(self, request_id: str) -> None:
        """Forget what is retained of a request, after every step already submitted."""
        pooler, step = self.pooler, self.account.last_step
        self._underway.discard(request_id)
        if pooler is not None:
            self.compute.submit("abort", lambda: pooler.abort(request_id), step=step)

    def flags(self) -> dict[str, str]:
        """Process-wide switches and what the blocks themselves say they do."""
        block = self.model.blocks[0]
        return {
            **attest_flags(),
            "batch_invariant": "on" if block.batch_invariant else "off",
            "attention": block.backend,
            "dtype": str(next(block.products()).dtype).removeprefix("torch."),
        }

    def witness(self) -> RankWitness:
        """This rank's account of the run."""
        return self.account.witness(staging_slots=self.staging.num_used)

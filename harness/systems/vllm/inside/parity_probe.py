"""Loaded by vLLM itself: a scheduler that writes down its steps, and counters in every worker.

vLLM takes both by name (`scheduler_cls`, `worker_extension_cls`), so the engine runs as released.
Each count is made where the thing happens: in the scheduler when a step leaves it, when its result
is back and when it asks for memory, in a worker when the model is called, when a compiled artefact
is, and when tensor ranks sum.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

LOG = "PARITY_STEP_LOG"
"""Environment variable: the file that steps are appended to, one JSON object a line."""

CALLS: Counter[str] = Counter()
"""Calls of compiled artefacts in this process, by the class that made them."""


def _count_calls(owner: type, method: str = "__call__") -> None:
    inner = getattr(owner, method)

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        CALLS[owner.__name__] += 1
        return inner(self, *arguments, **named)

    setattr(owner, method, counted)


def _count_compiled() -> None:
    from torch._inductor.output_code import CompiledFxGraph  # noqa: PLC0415 - heavy

    _count_calls(CompiledFxGraph)
    try:
        from vllm.compilation.piecewise_backend import PiecewiseBackend  # noqa: PLC0415
    except ImportError:
        return  # another version keeps it elsewhere; the artefacts above are counted all the same
    _count_calls(PiecewiseBackend)


def _count_replays() -> None:
    """Replays of a CUDA graph: what it recorded runs again without being called.

    It counts as compiled only if a compiled artefact was called while it was recorded.
    """
    import torch  # noqa: PLC0415 - vllm has it loaded

    owner: Any = torch.cuda.CUDAGraph
    begin, end, replay = owner.capture_begin, owner.capture_end, owner.replay

    def capture_begin(self: Any, *arguments: Any, **named: Any) -> Any:
        self._parity_calls = CALLS.total()
        return begin(self, *arguments, **named)

    def capture_end(self: Any) -> Any:
        self._parity_compiled = CALLS.total() > self._parity_calls
        return end(self)

    def replayed(self: Any) -> Any:
        if self._parity_compiled:
            CALLS[REPLAYS] += 1
        return replay(self)

    owner.capture_begin, owner.capture_end, owner.replay = capture_begin, capture_end, replayed


def _leave_out_helpers() -> None:
    """What vLLM compiles whatever `enforce_eager` says is not counted: the mask of a vocabulary
    that tensor ranks share. In compiled execution it is a part of the model's own graph."""
    import torch  # noqa: PLC0415 - vllm has it loaded
    from vllm.model_executor.layers import vocab_parallel_embedding as place  # noqa: PLC0415

    asked = place.get_masked_input_and_mask

    def masked(*arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling():
            return asked(*arguments, **named)
        before = dict(CALLS)
        found = asked(*arguments, **named)
        CALLS.clear()
        CALLS.update(before)
        return found

    place.get_masked_input_and_mask = masked


REPLAYS = "CUDAGraph"
"""In CALLS: replays of graphs that recorded compiled code."""
_count_compiled()
_leave_out_helpers()
_count_replays()

SUMS: Counter[str] = Counter()
"""Sums over the tensor ranks of this process's stage: `sums`, and their `summands` in all."""


def _sum_counted(group: Any, summed: Any) -> Any:
    """The released sum of one group, counted where the group is that of the tensor ranks."""
    if group.unique_name.startswith("tp"):
        SUMS["sums"] += 1
        SUMS["summands"] += group.world_size
    return summed(group)


def _count_sums() -> None:
    """Count the sums when they run, in compiled code as well.

    Where vLLM calls its own operator for a sum (CUDA), its body is counted. Elsewhere a compiler
    would look through the sum and leave the counting out, so it is made an operator as well.
    """
    import torch  # noqa: PLC0415 - vllm has it loaded
    from vllm.distributed import parallel_state  # noqa: PLC0415

    owner = parallel_state.GroupCoordinator
    summed, asked = owner._all_reduce_out_place, owner.all_reduce

    schema = "(Tensor tensor, str name) -> Tensor"

    @torch.library.custom_op("parity::all_reduce", mutates_args=(), schema=schema)
    def in_one_piece(tensor: torch.Tensor, name: str) -> torch.Tensor:
        group = parallel_state._groups[name]()
        # The released sum is in place on a CPU, and an operator may not hand back its argument.
        found: torch.Tensor = _sum_counted(group, lambda g: summed(g, tensor.clone()))
        return found

    @in_one_piece.register_fake
    def _(tensor: torch.Tensor, name: str) -> torch.Tensor:
        del name
        return torch.empty_like(tensor)

    def out_of_place(self: Any, tensor: Any) -> Any:
        return _sum_counted(self, lambda g: summed(g, tensor))

    def all_reduce(self: Any, tensor: Any) -> Any:
        if self.world_size == 1 or self.use_custom_op_call:
            return asked(self, tensor)
        return torch.ops.parity.all_reduce(tensor, self.unique_name)

    owner._all_reduce_out_place, owner.all_reduce = out_of_place, all_reduce


_count_sums()


class _Written:
    """What both schedulers write down."""

    requests: Any
    kv_cache_manager: Any
    _numbers: dict[int, int]
    _steps: int = 0
    _preempted: int = 0
    _short: bool = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        given = self.kv_cache_manager.allocate_slots

        def allocate_slots(*asked: Any, **how: Any) -> Any:
            found = given(*asked, **how)
            self._short |= found is None
            return found

        self.kv_cache_manager.allocate_slots = allocate_slots

    def schedule(self, *arguments: Any, **named: Any) -> Any:
        self._short = False
        output = super().schedule(*arguments, **named)  # type: ignore[misc]
        if not output.total_num_scheduled_tokens:
            return output
        cached = output.scheduled_cached_reqs
        starts = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        starts |= dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        entries = [
            [name, starts[name], count, self.requests[name].num_prompt_tokens]
            for name, count in output.num_scheduled_tokens.items()
        ]
        if self._steps == 0:
            self._numbers = {}
        self._numbers[id(output)] = self._steps
        pool = self.kv_cache_manager.block_pool
        there = pool.num_gpu_blocks - 1  # one stands for "no block"
        _write(
            {
                "step": self._steps,
                "entries": entries,
                "preempted": self._preempted,
                "short": self._short,
                "held": there - pool.get_num_free_blocks(),
                "blocks": there,
            }
        )
        self._steps += 1
        return output

    def update_from_output(self, scheduler_output: Any, *arguments: Any, **named: Any) -> Any:
        result = super().update_from_output(scheduler_output, *arguments, **named)  # type: ignore[misc]
        number = getattr(self, "_numbers", {}).pop(id(scheduler_output), None)
        if number is not None:
            _write({"done": number})
        return result

    def _preempt_request(self, *arguments: Any, **named: Any) -> Any:
        self._preempted += 1
        return super()._preempt_request(*arguments, **named)  # type: ignore[misc]


class SyncWritten(_Written, Scheduler):  # type: ignore[misc]
    """The released synchronous scheduler, written down."""


class AsyncWritten(_Written, AsyncScheduler):  # type: ignore[misc]
    """The released asynchronous scheduler, written down."""


def _write(event: dict[str, Any]) -> None:
    place = os.environ.get(LOG)
    if place:
        with open(place, "a", encoding="utf-8") as log:  # noqa: PTH123 - one line, at once
            log.write(json.dumps(event) + "\n")


class Watch:
    """Mixed into vLLM's worker: `collective_rpc` calls these on every rank."""

    def parity_watch(self) -> None:
        """Count this rank's model calls from now on."""
        runner: Any = self.model_runner  # type: ignore[attr-defined]
        calls: list[int] = []
        self._parity_calls = calls

        def note(_: Any, arguments: Any, named: Any) -> None:
            positions = named.get("positions")
            if positions is None and len(arguments) > 1:
                positions = arguments[1]
            calls.append(-1 if positions is None else int(positions.shape[-1]))

        model = runner.get_model() if hasattr(runner, "get_model") else runner.model
        model.register_forward_pre_hook(note, with_kwargs=True)

    def parity_count(self) -> dict[str, Any]:
        """What this rank has done since it was started."""
        import torch  # noqa: PLC0415 - the worker has it loaded

        return {
            "rank": int(getattr(self, "rank", 0)),
            "pid": os.getpid(),
            "rows": list(self._parity_calls),
            "compiled": dict(CALLS),
            "sums": dict(SUMS),
            "num_threads": torch.get_num_threads(),
            "instruction_set": str(torch.backends.cpu.get_cpu_capability()),
            "device": str(getattr(self, "device", "cpu")),
        }

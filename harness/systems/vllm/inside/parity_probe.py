"""Loaded by vLLM itself: a scheduler that writes down its steps, and counters in every worker.

vLLM takes both by name (`scheduler_cls`, `worker_extension_cls`), so the engine runs as released.
Each count is made where the thing happens: in the scheduler when a step leaves it and when its
result is back, in a worker when the model is called and when a compiled artefact is.
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


_count_compiled()


class _Written:
    """What both schedulers write down."""

    requests: Any
    _numbers: dict[int, int]
    _steps: int = 0
    _preempted: int = 0

    def schedule(self, *arguments: Any, **named: Any) -> Any:
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
        _write({"step": self._steps, "entries": entries, "preempted": self._preempted})
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
            "num_threads": torch.get_num_threads(),
            "instruction_set": str(torch.backends.cpu.get_cpu_capability()),
            "device": str(getattr(self, "device", "cpu")),
        }

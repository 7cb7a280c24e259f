"""Ranks in other processes: what the driver says to each over a pipe, and what it hears."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import torch

from engine import errors
from engine.config import EngineConfig
from engine.errors import CheckpointError, ConfigurationError, WorkerError
from engine.executor import wire
from engine.executor.base import RunAccount
from engine.plan import StepPlan
from engine.request import PoolingFailure, PoolingOutput, PoolingRequest, PoolingResult
from engine.scheduler.base import ScheduledStep
from engine.taps import Tap
from engine.witness import RankWitness

_START_UP_ERRORS = (ConfigurationError, CheckpointError)


class RemoteExecutor(ABC):
    """Owns: the driver's ends of the pipes. A rank that dies, hangs or raises is a WorkerError."""

    def __init__(self, config: EngineConfig) -> None:
        """A subclass fills `_pipes`, one a rank in order, and calls `_await_ready`."""
        self._timeout = config.parallel.worker_timeout_s
        self._startup_timeout = config.parallel.startup_timeout_s
        self._sent: set[str] = set()
        self._tasks: dict[str, PoolingRequest] = {}
        self._pipes: list[Connection] = []

    @abstractmethod
    def close(self) -> None:
        """Release processes and connections. Idempotent."""

    @abstractmethod
    def _name_of(self, rank: int) -> str:
        """What to call a rank in an error."""

    @abstractmethod
    def _end_of(self, rank: int) -> str:
        """How a rank whose pipe closed has ended."""

    def _await_ready(self) -> None:
        for rank in range(len(self._pipes)):
            self._receive(rank, self._startup_timeout)

    def begin_run(self, *, taps: bool) -> None:
        self._sent, self._tasks = set(), {}
        self._broadcast({"verb": "begin", "taps": taps})

    def submit(self, step: ScheduledStep, requests: Mapping[str, PoolingRequest]) -> _RemoteHandle:
        new = [e.request_id for e in step.plan.entries if e.request_id not in self._sent]
        self._sent.update(new)
        self._tasks.update({name: requests[name] for name in new})
        self._broadcast(
            {
                "verb": "submit",
                "step": wire.step_to_json(step),
                "requests": [wire.request_to_json(requests[name]) for name in new],
            }
        )
        return _RemoteHandle(self, step.plan)

    def resolve(self, plan: StepPlan) -> tuple[PoolingResult, ...]:
        """Results of a step from the last rank; the others are told to make sure they ran it."""
        self._broadcast({"verb": "resolve", "index": plan.index})
        message, tensors = self._receive(len(self._pipes) - 1)
        outputs = (
            PoolingOutput(
                request_id=name,
                task=self._tasks[name].task,
                values=tensors[str(i)],
                num_prompt_tokens=self._tasks[name].num_tokens,
            )
            for i, name in enumerate(message["outputs"])
        )
        failures = (
            PoolingFailure(request_id=name, reason=reason)
            for name, reason in message["failures"].items()
        )
        return (*outputs, *failures)

    def abort(self, request_id: str) -> None:
        self._broadcast({"verb": "abort", "request_id": request_id})

    def end_run(self) -> RunAccount:
        self._broadcast({"verb": "end"})
        replies = [self._receive(rank) for rank in range(len(self._pipes))]
        last = replies[-1][0]
        taps = [
            Tap(request_id=name, layer=layer, step=step, start=start, rows=tensors[str(i)])
            for message, tensors in replies
            for i, (name, layer, step, start) in enumerate(message["taps"])
        ]
        flags = [message["flags"] for message, _ in replies]
        if any(f != flags[0] for f in flags):
            raise WorkerError(f"ranks run under different process flags: {flags}")
        return RunAccount(
            ranks=tuple(_rank_witness(message["witness"]) for message, _ in replies),
            chunks=last["chunks"],
            padded_tokens=tuple(last["padded_tokens"]),
            instruction_set=flags[0].get("instruction_set", ""),
            flags=flags[0],
            taps=tuple(taps),
        )

    def apply_plugin(self, name: str) -> None:
        self._plugin(name, apply=True)

    def remove_plugin(self, name: str) -> None:
        self._plugin(name, apply=False)

    def _plugin(self, name: str, *, apply: bool) -> None:
        self._broadcast({"verb": "plugin", "name": name, "apply": apply})
        for rank in range(len(self._pipes)):
            self._receive(rank)

    def _broadcast(self, message: wire.Message) -> None:
        for rank, pipe in enumerate(self._pipes):
            try:
                wire.send(pipe, message)
            except OSError:
                self._receive(rank)  # prefer the worker's own last words to "broken pipe"
                raise

    def _receive(
        self, rank: int, timeout_s: float | None = None
    ) -> tuple[wire.Message, dict[str, torch.Tensor]]:
        timeout_s = self._timeout if timeout_s is None else timeout_s
        pipe = self._pipes[rank]
        if not pipe.poll(timeout_s):
            self._raise_others(rank)
            raise WorkerError(
                f"{self._name_of(rank)} gave no answer within {timeout_s:g} s; it "
                "hangs or is starved. Raise worker_timeout_s (startup_timeout_s at start-up) if it "
                "really needs that long."
            )
        try:
            message, tensors = wire.receive(pipe)
        except (EOFError, OSError) as error:
            end = self._end_of(rank)
            self._raise_others(rank)
            raise WorkerError(f"{self._name_of(rank)} {end}") from error
        if "error" in message:
            text = message["error"]
            name, _, reason = text.partition(": ")
            kind = getattr(errors, name, None)
            if isinstance(kind, type) and issubclass(kind, _START_UP_ERRORS):
                raise kind(reason)  # the user's to mend, so told as it is without processes
            raise WorkerError(f"rank {rank} raised {text}\n{message['traceback']}")
        return message, tensors

    def _raise_others(self, silent: int) -> None:
        """A rank is silent, perhaps because a neighbour failed: raise the neighbour's error."""
        for rank, pipe in enumerate(self._pipes):
            if rank != silent and pipe.poll(0):
                try:
                    message, _ = wire.receive(pipe)
                except (EOFError, OSError):
                    continue
                if "error" in message:
                    raise WorkerError(
                        f"rank {rank} raised {message['error']} (rank {silent} waited for it)\n"
                        f"{message['traceback']}"
                    )


class _RemoteHandle:
    """A step some other process is running."""

    def __init__(self, executor: RemoteExecutor, plan: StepPlan) -> None:
        self._executor, self.plan = executor, plan

    def result(self) -> tuple[PoolingResult, ...]:
        if not self.plan.finishes_any:
            return ()
        return self._executor.resolve(self.plan)


def _rank_witness(data: dict[str, Any]) -> RankWitness:
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return RankWitness(**known)

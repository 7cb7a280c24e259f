"""What every device does the same way: names, history, order, failure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch

from engine.errors import ConfigurationError, LedgerError
from engine.stream.base import Buffer, OperationLog, Reads, Stream, rank_of
from engine.stream.hazards import Clock, HappensBefore
from engine.stream.log import Operation
from engine.stream.tasks import Task, TaskRunner

S = TypeVar("S", bound=Stream)


class TrackedDevice(Generic[S]):
    """Owns: the streams by name, the history, the order and the failure of one process.

    A subclass decides when operations run. Safe to call from several threads.
    """

    def __init__(self, num_ranks: int) -> None:
        """A device for ranks 0 to `num_ranks` - 1, all of the job's, here or elsewhere."""
        if num_ranks < 1:
            raise ConfigurationError(f"num_ranks={num_ranks}: expected at least 1")
        self._num_ranks = num_ranks
        self._lock = threading.RLock()
        self._log = OperationLog()
        self._order = HappensBefore()
        self._runner = TaskRunner(self._log, self._order, self._lock)
        self._streams: dict[str, S] = {}
        self._closed = False

    @property
    def log(self) -> OperationLog:
        return self._log

    @property
    def hazards(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(str(hazard) for hazard in self._order.hazards)

    def stream(self, name: str) -> S:
        with self._lock:
            if name not in self._streams:
                if rank_of(name) >= self._num_ranks:
                    raise ConfigurationError(
                        f"stream={name!r}: the ranks of this device are 0 to {self._num_ranks - 1}"
                    )
                self._streams[name] = self._make_stream(name)
            return self._streams[name]

    def register(self, buffer: Buffer) -> None:
        with self._lock:
            self._order.register(buffer)

    def host_access(
        self,
        host: str,
        name: str,
        *,
        step: int,
        reads: Sequence[Buffer] = (),
        writes: Sequence[Buffer] = (),
    ) -> None:
        with self._host_call(f"touch buffers as {host}"):
            self._decision_point()
            self._order.host_access(host, name=name, step=step, reads=reads, writes=writes)

    def join(self, host: str, other: str) -> None:
        with self._lock:
            self._order.join(host, other)

    def end_step(self, step: int, host: str) -> None:
        with self._host_call(f"end step {step} as {host}"):
            self._decision_point()

    def clock(self, stream: str) -> Clock:
        """What all that follows on a stream now comes after."""
        with self._lock:
            return self._order.clock(stream)

    def _make_stream(self, name: str) -> S:
        raise NotImplementedError

    def _decision_point(self) -> None:
        """The host is at a point where a schedule may differ."""

    def _new_task(
        self,
        stream: str,
        name: str,
        fn: Callable[[], None],
        *,
        step: int,
        host: str | None,
        cost: int,
        reads: Reads,
        writes: Sequence[Buffer],
        after: tuple[Operation, ...] = (),
    ) -> Task:
        """Order and number a submission."""
        if cost < 0:
            raise LedgerError(f"operation {name!r} on {stream}: cost={cost}, expected at least 0")
        late_reads: Callable[[], Sequence[torch.Tensor]] | None = reads if callable(reads) else None
        rank = rank_of(stream)
        point = self._order.submit(
            stream,
            host=f"host@{rank}" if host is None else host,
            name=name,
            step=step,
            reads=() if callable(reads) else reads,
            writes=writes,
        )
        operation = self._log.submit(stream=stream, rank=rank, step=step, name=name, cost=cost)
        return Task(operation=operation, fn=fn, after=after, point=point, late_reads=late_reads)

    def _forget_run(self) -> None:
        self._runner.begin_run()
        self._log.clear()
        self._order.begin_run()

    def _host_call(self, what: str) -> threading.RLock:
        """The device's lock, for a call that only a host may make and only while it is open."""
        self._runner.check_outside(what)
        if self._closed:
            raise LedgerError(f"tried to {what}: the device is closed")
        return self._lock

"""Streams of the host's making: the semantics of a device's streams, on a CPU.

An operation reads its staging buffer when it runs and not when it is submitted, exactly as a copy
from pinned memory does, so a missing fence gives the same wrong answer here as on a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from engine.config import StreamPolicy
from engine.errors import ConfigurationError, LedgerError
from engine.stream.base import Buffer, Event, Operation, OperationLog, Reads, rank_of
from engine.stream.cooperative import CooperativeQueues
from engine.stream.hazards import Clock, HappensBefore
from engine.stream.policies import cooperative_policy
from engine.stream.tasks import Dispatcher, Task, TaskRunner
from engine.stream.threads import ThreadedQueues


class HostEvent:
    """Done when a fixed set of operations is. Immutable."""

    def __init__(self, device: HostDevice, fenced: tuple[Operation, ...], clock: Clock) -> None:
        self.device = device
        self.fenced = fenced
        self.clock = clock

    @property
    def done(self) -> bool:
        return all(operation.done for operation in self.fenced)

    def synchronize(self, host: str) -> None:
        self.device.wait_for(self, host)


class HostStream:
    """Owns: the last operation of the stream, and the events the next one has to wait for."""

    def __init__(self, device: HostDevice, name: str) -> None:
        self._device = device
        self._name = name
        self.rank = rank_of(name)
        self.last: Operation | None = None
        self.pending: tuple[Operation, ...] = ()

    @property
    def name(self) -> str:
        return self._name

    def submit(
        self,
        name: str,
        fn: Callable[[], None],
        *,
        step: int,
        host: str | None = None,
        cost: int = 1,
        reads: Reads = (),
        writes: Sequence[Buffer] = (),
    ) -> Operation:
        if cost < 0:
            raise LedgerError(f"operation {name!r} on {self.name}: cost={cost}, expected >= 0")
        return self._device.submit(
            self, name, fn, step=step, host=host, cost=cost, reads=reads, writes=writes
        )

    def record(self) -> HostEvent:
        return self._device.record(self)

    def wait(self, event: Event) -> None:
        self._device.hold(self, event)

    def fence(self) -> tuple[Operation, ...]:
        """Operations that must be done for everything so far to be done."""
        return self.pending if self.last is None else (*self.pending, self.last)


class HostDevice:
    """Owns: the streams, the history and the order of one process. Safe to call from threads."""

    def __init__(self, policy: StreamPolicy, num_ranks: int) -> None:
        """A device for ranks 0 to `num_ranks` - 1, all of the job's, here or elsewhere."""
        if num_ranks < 1:
            raise ConfigurationError(f"num_ranks={num_ranks}: expected at least 1")
        self._num_ranks = num_ranks
        self._lock = threading.RLock()
        self._log = OperationLog()
        self._order = HappensBefore()
        self._runner = TaskRunner(self._log, self._order, self._lock)
        self._dispatcher: Dispatcher = (
            ThreadedQueues(self._runner, self._lock)
            if policy.kind == "threaded"
            else CooperativeQueues(self._runner, cooperative_policy(policy, num_ranks))
        )
        self._streams: dict[str, HostStream] = {}
        self._closed = False

    @property
    def log(self) -> OperationLog:
        return self._log

    @property
    def hazards(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(str(hazard) for hazard in self._order.hazards)

    def stream(self, name: str) -> HostStream:
        with self._lock:
            if name not in self._streams:
                if rank_of(name) >= self._num_ranks:
                    raise ConfigurationError(
                        f"stream={name!r}: the ranks of this device are 0 to {self._num_ranks - 1}"
                    )
                self._streams[name] = HostStream(self, name)
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
            self._dispatcher.decision_point()
            self._order.host_access(host, name=name, step=step, reads=reads, writes=writes)

    def join(self, host: str, other: str) -> None:
        with self._lock:
            self._order.join(host, other)

    def end_step(self, step: int, host: str) -> None:
        with self._host_call(f"end step {step} as {host}"):
            self._dispatcher.decision_point()

    def begin_run(self) -> None:
        with self._host_call("begin a run"):
            self._dispatcher.begin_run()
            self._runner.begin_run()
            self._log.clear()
            self._order.begin_run()
            for stream in self._streams.values():
                stream.last, stream.pending = None, ()

    def drain(self) -> None:
        with self._host_call("drain the device"):
            self._dispatcher.drain()
            self._order.barrier()

    def close(self) -> None:
        self._runner.check_outside("close the device")
        self._closed = True
        self._dispatcher.close()

    # ------------------------------------------------------- what its streams and events call
    def submit(
        self,
        stream: HostStream,
        name: str,
        fn: Callable[[], None],
        *,
        step: int,
        host: str | None,
        cost: int,
        reads: Reads,
        writes: Sequence[Buffer],
    ) -> Operation:
        """Number, order and queue an operation."""
        with self._host_call(f"submit {name!r} to {stream.name}"):
            late_reads = reads if callable(reads) else None
            point = self._order.submit(
                stream.name,
                host=f"host@{stream.rank}" if host is None else host,
                name=name,
                step=step,
                reads=() if callable(reads) else reads,
                writes=writes,
            )
            operation = self._log.submit(
                stream=stream.name, rank=stream.rank, step=step, name=name, cost=cost
            )
            after = stream.pending
            stream.last, stream.pending = operation, ()
            self._dispatcher.enqueue(
                Task(operation=operation, fn=fn, after=after, point=point, late_reads=late_reads)
            )
            return operation

    def record(self, stream: HostStream) -> HostEvent:
        """Fence a stream."""
        with self._lock:
            return HostEvent(self, stream.fence(), self._order.clock(stream.name))

    def hold(self, stream: HostStream, event: Event) -> None:
        """Make a stream wait for an event."""
        fenced = self._own(event)
        with self._lock:
            missing = (op for op in fenced.fenced if not op.done and op not in stream.pending)
            stream.pending = (*stream.pending, *missing)
            self._order.wait(stream.name, fenced.clock)

    def wait_for(self, event: HostEvent, host: str) -> None:
        """Make a host wait for an event."""
        with self._host_call(f"wait as {host}"):
            self._dispatcher.decision_point()
            self._dispatcher.finish(event.fenced)
            self._order.wait(host, event.clock)

    def _own(self, event: Event) -> HostEvent:
        if not isinstance(event, HostEvent) or event.device is not self:
            raise LedgerError(f"event={event!r} was not recorded on a stream of this device")
        return event

    def _host_call(self, what: str) -> threading.RLock:
        """The device's lock, for a call that only a host may make and only while it is open."""
        self._runner.check_outside(what)
        if self._closed:
            raise LedgerError(f"tried to {what}: the device is closed")
        return self._lock

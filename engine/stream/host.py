"""Streams of the host's making: the semantics of a device's streams, on a CPU.

An operation reads its staging buffer when it runs and not when it is submitted, exactly as a copy
from pinned memory does, so a missing fence gives the same wrong answer here as on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.config import StreamPolicy
from engine.errors import LedgerError
from engine.stream.base import Buffer, Event, Operation, Reads
from engine.stream.cooperative import CooperativeQueues
from engine.stream.hazards import Clock
from engine.stream.policies import cooperative_policy
from engine.stream.tasks import Dispatcher
from engine.stream.threads import ThreadedQueues
from engine.stream.tracking import TrackedDevice


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
        self.device.synchronize(self, host)


class HostStream:
    """Owns: the last operation of the stream, and what the next one has to wait for."""

    def __init__(self, device: HostDevice, name: str) -> None:
        self._device = device
        self._name = name
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
        return self._device.submit(
            self, name, fn, step=step, host=host, cost=cost, reads=reads, writes=writes
        )

    def record(self) -> HostEvent:
        return self._device.record(self)

    def wait(self, event: Event) -> None:
        self._device.hold(self, event)


class HostDevice(TrackedDevice[HostStream]):
    """Owns: the dispatcher, which decides by the policy when an operation runs."""

    def __init__(self, policy: StreamPolicy, num_ranks: int) -> None:
        super().__init__(num_ranks)
        self._dispatcher: Dispatcher = (
            ThreadedQueues(self._runner, self._lock)
            if policy.kind == "threaded"
            else CooperativeQueues(self._runner, cooperative_policy(policy, num_ranks))
        )

    def begin_run(self) -> None:
        with self._host_call("begin a run"):
            self._dispatcher.begin_run()
            self._forget_run()
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
            task = self._new_task(
                stream.name,
                name,
                fn,
                step=step,
                host=host,
                cost=cost,
                reads=reads,
                writes=writes,
                after=stream.pending,
            )
            stream.last, stream.pending = task.operation, ()
            self._dispatcher.enqueue(task)
            return task.operation

    def record(self, stream: HostStream) -> HostEvent:
        """Fence a stream: its last operation, and what it was told to wait for since."""
        with self._lock:
            last = () if stream.last is None else (stream.last,)
            return HostEvent(self, (*stream.pending, *last), self._order.clock(stream.name))

    def hold(self, stream: HostStream, event: Event) -> None:
        """Make a stream wait for an event."""
        if not isinstance(event, HostEvent) or event.device is not self:
            raise LedgerError(f"event={event!r} was not recorded on a stream of this device")
        with self._lock:
            missing = (op for op in event.fenced if not op.done and op not in stream.pending)
            stream.pending = (*stream.pending, *missing)
            self._order.wait(stream.name, event.clock)

    def synchronize(self, event: HostEvent, host: str) -> None:
        """Make a host wait for an event."""
        with self._host_call(f"wait as {host}"):
            self._decision_point()
            self._dispatcher.finish(event.fenced)
            self._order.wait(host, event.clock)

    def _make_stream(self, name: str) -> HostStream:
        return HostStream(self, name)

    def _decision_point(self) -> None:
        self._dispatcher.decision_point()

"""Streams of a CUDA device, with the same history and the same happens-before check.

A kernel's completion cannot call back into the history, so events are polled, always right before
the next submission is numbered. A completion therefore carries a number below the first
submission that the host made after the device had reached it, and overlap is never overstated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import torch

from engine.config import StreamPolicy
from engine.errors import ConfigurationError, LedgerError
from engine.stream.base import Buffer, Event, Operation, Reads
from engine.stream.hazards import Clock
from engine.stream.tasks import Task
from engine.stream.tracking import TrackedDevice


class CudaEvent:
    """An event of the device, with its clock. Immutable."""

    def __init__(self, device: CudaDevice, event: torch.cuda.Event, clock: Clock) -> None:
        self.device = device
        self.event = event
        self.clock = clock

    @property
    def done(self) -> bool:
        return _reached(self.event)

    def synchronize(self, host: str) -> None:
        self.device.synchronize(self, host)


class CudaStream:
    """Owns: one stream of the device, and what was submitted to it and not yet seen done.

    What is submitted stays referenced until its event is seen done, so a tensor that only `fn`
    holds is not freed under another stream that still reads it.
    """

    def __init__(self, device: CudaDevice, name: str, raw: torch.cuda.Stream) -> None:
        self._device = device
        self._name = name
        self.raw = raw
        self.in_flight: deque[tuple[Task, torch.cuda.Event]] = deque()

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

    def record(self) -> CudaEvent:
        return CudaEvent(self._device, self.raw.record_event(), self._device.clock(self.name))

    def wait(self, event: Event) -> None:
        self._device.hold(self, event)


class CudaDevice(TrackedDevice[CudaStream]):
    """The process's current CUDA device. Owns: its streams."""

    def __init__(self, policy: StreamPolicy, num_ranks: int) -> None:
        """Streams on the current device; `policy` must be `threaded`, the one it has by nature.

        Raises:
            ConfigurationError: no usable CUDA device, or a policy that cannot steer one.
        """
        if not torch.cuda.is_available():
            built = torch.version.cuda or "none, a build for CPUs only"
            raise ConfigurationError(
                f"device='cuda': torch {torch.__version__} finds no usable CUDA device (CUDA it "
                f"was built with: {built}; devices seen: {torch.cuda.device_count()}). Install a "
                "CUDA build of torch and a driver, or use device='cpu'"
            )
        if policy.kind != "threaded":
            raise ConfigurationError(
                f"stream policy {str(policy)!r} cannot steer a CUDA device, which runs when it "
                "will: expected 'threaded', or use device='cpu'"
            )
        super().__init__(num_ranks)

    def begin_run(self) -> None:
        with self._host_call("begin a run"):
            self._poll()
            if not self._runner.failed:
                for stream in self._streams.values():
                    if stream.in_flight:
                        raise LedgerError(
                            f"a run begins with {len(stream.in_flight)} operations in flight on "
                            f"{stream.name}: drain the device first"
                        )
            self._finish_streams()
            for stream in self._streams.values():
                stream.in_flight.clear()
                # A rank makes its streams first and then fills its buffers, on the current stream:
                # the first step must not write them before that is done.
                stream.raw.wait_stream(torch.cuda.current_stream())
            self._forget_run()

    def drain(self) -> None:
        with self._host_call("drain the device"):
            self._finish_streams()
            self._runner.raise_failure()
            self._order.barrier()

    def close(self) -> None:
        """Wait for what is in flight: work on a device cannot be taken back."""
        self._runner.check_outside("close the device")
        with self._lock:
            if not self._closed:
                self._closed = True
                self._finish_streams()

    # ------------------------------------------------------- what its streams and events call
    def submit(
        self,
        stream: CudaStream,
        name: str,
        fn: Callable[[], None],
        *,
        step: int,
        host: str | None,
        cost: int,
        reads: Reads,
        writes: Sequence[Buffer],
    ) -> Operation:
        """Number and order an operation, and give it to the device at once."""
        with self._host_call(f"submit {name!r} to {stream.name}"):
            self._poll()
            task = self._new_task(
                stream.name,
                name,
                fn,
                step=step,
                host=host,
                cost=cost,
                reads=reads,
                writes=writes,
            )
            with torch.cuda.stream(stream.raw):
                if self._runner.attempt(task):
                    stream.in_flight.append((task, stream.raw.record_event()))
            return task.operation

    def hold(self, stream: CudaStream, event: Event) -> None:
        """Make a stream wait for an event."""
        if not isinstance(event, CudaEvent) or event.device is not self:
            raise LedgerError(f"event={event!r} was not recorded on a stream of this device")
        with self._lock:
            stream.raw.wait_event(event.event)
            self._order.wait(stream.name, event.clock)

    def synchronize(self, event: CudaEvent, host: str) -> None:
        """Make a host wait for an event."""
        self._host_call(f"wait as {host}")
        try:
            event.event.synchronize()  # not under the lock: other hosts go on
        except RuntimeError as error:
            self._fail_oldest(error)
        with self._lock:
            self._poll()
            self._runner.raise_failure()
            self._order.wait(host, event.clock)

    def _make_stream(self, name: str) -> CudaStream:
        raw = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        # Weights and buffers were filled on the current stream.
        raw.wait_stream(torch.cuda.current_stream())
        return CudaStream(self, name, raw)

    def _poll(self) -> None:
        """Number the completions that the device has reached."""
        try:
            for stream in self._streams.values():
                while stream.in_flight and _reached(stream.in_flight[0][1]):
                    self._log.complete(stream.in_flight.popleft()[0].operation)
        except RuntimeError as error:
            self._fail_oldest(error)

    def _finish_streams(self) -> None:
        try:
            for stream in self._streams.values():
                stream.raw.synchronize()
        except RuntimeError as error:
            self._fail_oldest(error)
        self._poll()

    def _fail_oldest(self, error: RuntimeError) -> None:
        """A kernel failed. The device does not say which: name the oldest still in flight."""
        with self._lock:
            in_flight = [task.operation for s in self._streams.values() for task, _ in s.in_flight]
            if not in_flight:
                raise error
            self._runner.fail(min(in_flight, key=lambda operation: operation.number), error)


def _reached(event: torch.cuda.Event) -> bool:
    return bool(event.query())  # type: ignore[no-untyped-call]

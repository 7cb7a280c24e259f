"""Running one submitted operation, and keeping the failure if it raises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from engine.errors import LedgerError, WorkerError
from engine.stream.hazards import HappensBefore, Point
from engine.stream.log import Operation, OperationLog


@dataclass(slots=True, eq=False, kw_only=True)
class Task:
    """An operation that has yet to run."""

    operation: Operation
    fn: Callable[[], None]
    after: tuple[Operation, ...]
    """Operations that must be done first; its stream predecessor is implied by the queue."""
    point: Point
    late_reads: Callable[[], Sequence[torch.Tensor]] | None

    @property
    def unblocked(self) -> bool:
        return all(operation.done for operation in self.after)


class Dispatcher(Protocol):
    """Decides when a queued task runs. Owns: the queues of one device."""

    def enqueue(self, task: Task) -> None:
        """Take a task; never raises what the task raises."""
        ...

    def decision_point(self) -> None:
        """The host is at a point where a schedule may differ."""
        ...

    def finish(self, operations: Sequence[Operation]) -> None:
        """Return once all are done, or raise the run's failure."""
        ...

    def drain(self) -> None:
        """Return once nothing is queued or running, or raise the run's failure."""
        ...

    def begin_run(self) -> None:
        """Be as new. After a failure what is queued is dropped, else nothing may be queued."""
        ...

    def close(self) -> None:
        """Drop what is queued and end every thread."""
        ...


class TaskRunner:
    """Runs tasks and books their end. Owns: the run's first failure.

    After a failure nothing else runs until `begin_run`: an operation fed by a failed one would
    compute from garbage and hide the cause.
    """

    def __init__(self, log: OperationLog, order: HappensBefore, lock: threading.RLock) -> None:
        self._log = log
        self._order = order
        self._lock = lock
        self._failure: tuple[Operation, BaseException] | None = None
        self._inside = threading.local()

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def run(self, task: Task) -> None:
        """Run a task to its end and book it, unless the run has failed already.

        An `Exception` is kept for whoever waits; anything else (an interrupt) is kept and raised.
        """
        if self.attempt(task):
            with self._lock:
                self._log.complete(task.operation)

    def attempt(self, task: Task) -> bool:
        """`run` without the booking. Returns whether `fn` ran and returned."""
        if self.failed:
            return False
        self._inside.task = task
        try:
            # The mode is thread-local, so it is set here, wherever the task happens to run.
            with torch.inference_mode():
                task.fn()
                late = () if task.late_reads is None else tuple(task.late_reads())
            with self._lock:
                self._order.ran(task.point, late)
        except BaseException as error:
            self.fail(task.operation, error)
            if not isinstance(error, Exception):
                raise
            return False
        finally:
            self._inside.task = None
        return True

    def fail(self, operation: Operation, error: BaseException) -> None:
        """Keep the run's first failure."""
        with self._lock:
            if self._failure is None:
                self._failure = (operation, error)

    def raise_failure(self) -> None:
        """Raise the run's failure, if there is one, from its cause."""
        if self._failure is not None:
            operation, error = self._failure
            raise WorkerError(
                f"{operation} raised {type(error).__name__}: {error}; what was submitted after it "
                "was skipped"
            ) from error

    def check_outside(self, what: str) -> None:
        """Refuse a call from inside an operation, as a callback on a real stream is refused.

        A stream that waits for itself would never end.
        """
        task: Task | None = getattr(self._inside, "task", None)
        if task is not None:
            raise LedgerError(f"{task.operation} tried to {what} while running: only a host may")

    def begin_run(self) -> None:
        """Forget the failure."""
        self._failure = None

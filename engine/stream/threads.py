"""Queues with one worker thread per stream: true concurrency."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Sequence

from engine.errors import LedgerError
from engine.stream.log import Operation
from engine.stream.tasks import Task, TaskRunner

SWITCH_S = 1e-5
"""How long one thread may keep the interpreter from the others. CPython's own 5 ms are longer than
a step of a small model, so that host and device would take turns instead of running side by side.
"""


class ThreadedQueues:
    """Owns: the queues and the worker threads. Called under the device's lock, but for `close`.

    Every wait is on one condition over that lock, so a waiting host lets the workers book.
    """

    def __init__(self, runner: TaskRunner, lock: threading.RLock) -> None:
        self._runner = runner
        self._changed = threading.Condition(lock)
        self._queues: dict[str, deque[Task]] = {}
        self._workers: list[threading.Thread] = []
        self._num_running = 0
        self._closed = False

    def enqueue(self, task: Task) -> None:
        stream = task.operation.stream
        if stream not in self._queues:
            self._queues[stream] = deque()
            worker = threading.Thread(target=self._work, args=(stream,), name=stream, daemon=True)
            self._workers.append(worker)
            worker.start()
        self._queues[stream].append(task)
        self._changed.notify_all()

    def decision_point(self) -> None:
        """Nothing to decide: the operating system schedules."""

    def finish(self, operations: Sequence[Operation]) -> None:
        self._wait_until_idle_or(operations)
        self._runner.raise_failure()
        if not all(operation.done for operation in operations):
            raise LedgerError("the device was closed while a host waited for it")

    def drain(self) -> None:
        self._changed.wait_for(self._idle)
        self._runner.raise_failure()

    def begin_run(self) -> None:
        if self._runner.failed:
            self._changed.wait_for(self._idle)  # the workers are skipping what is queued
        elif not self._idle():
            raise LedgerError(
                f"a run begins with {sum(map(len, self._queues.values()))} operations queued and "
                f"{self._num_running} running: drain the device first"
            )

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            workers, self._workers = self._workers, []
        for worker in workers:  # outside the lock: a running operation needs it to book its end
            worker.join()
        self._queues = {}

    def _work(self, stream: str) -> None:
        sys.setswitchinterval(SWITCH_S)
        queue = self._queues[stream]
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._runnable(queue))
                if self._closed:
                    return
                task = queue.popleft()
                self._num_running += 1
            # The runner keeps whatever is raised and every waiter raises it; the thread lives on.
            with contextlib.suppress(BaseException):
                self._runner.run(task)
            del task  # or its tensors would live until the stream's next operation
            with self._changed:
                self._num_running -= 1
                self._changed.notify_all()

    def _runnable(self, queue: deque[Task]) -> bool:
        return bool(queue) and (queue[0].unblocked or self._runner.failed)

    def _idle(self) -> bool:
        return self._closed or (self._num_running == 0 and not any(self._queues.values()))

    def _wait_until_idle_or(self, operations: Sequence[Operation]) -> None:
        def settled() -> bool:
            return self._closed or self._runner.failed or all(op.done for op in operations)

        self._changed.wait_for(settled)

"""Queues that run on the host's own thread, as their policy says."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from engine.errors import LedgerError
from engine.stream.log import Operation
from engine.stream.policies import Policy
from engine.stream.tasks import Task, TaskRunner


class CooperativeQueues:
    """Owns: the queue of each stream. Called under the device's lock."""

    def __init__(self, runner: TaskRunner, policy: Policy) -> None:
        self._runner = runner
        self._policy = policy
        self._queues: dict[str, deque[Task]] = {}

    # ---------------------------------------------------------------- what the device may do
    def enqueue(self, task: Task) -> None:
        if self._runner.failed:
            return
        self._queues.setdefault(task.operation.stream, deque()).append(task)
        self._policy.submitted(self, task.operation)

    def decision_point(self) -> None:
        self._policy.decision_point(self)

    def finish(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            self.run_through(operation)
        self._runner.raise_failure()
        self._policy.waited(self)
        self._runner.raise_failure()

    def drain(self) -> None:
        for queue in self._queues.values():
            while queue:
                self.run_through(queue[-1].operation)
        self._runner.raise_failure()

    def begin_run(self) -> None:
        queued = [task.operation for queue in self._queues.values() for task in queue]
        if queued and not self._runner.failed:
            raise LedgerError(
                f"a run begins with {len(queued)} operations queued, the first {queued[0]}: "
                "drain the device first"
            )
        self._queues = {}
        self._policy.begin_run()

    def close(self) -> None:
        self._queues = {}

    # ---------------------------------------------------------------- what a policy may do
    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self._queues)

    def head(self, stream: str) -> Task | None:
        queue = self._queues[stream]
        return queue[0] if queue else None

    def ready(self, stream: str) -> bool:
        head = self.head(stream)
        return head is not None and head.unblocked

    def run_head(self, stream: str) -> None:
        queue = self._queues[stream]
        task = queue.popleft()
        self._runner.run(task)
        if self._runner.failed:
            self._drop_all()
        self._policy.ran(task.operation, queue_empty=not queue)

    def run_through(self, operation: Operation) -> None:
        """Depth first over what is missing; a loop, since a long lag would exhaust the stack.

        It ends: an operation can only wait for operations submitted before it.
        """
        wanted = [operation]
        while wanted and not self._runner.failed:
            target = wanted[-1]
            head = self.head(target.stream) if not target.done else None
            if head is None:
                wanted.pop()
                continue
            missing = [other for other in head.after if not other.done]
            if missing:
                wanted.extend(missing)
            else:
                self.run_head(target.stream)

    def _drop_all(self) -> None:
        for queue in self._queues.values():
            queue.clear()

"""One run: admit, schedule, submit, take results, keeping as many steps in flight as allowed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from engine.errors import ConfigurationError, RequestError
from engine.executor.base import Executor
from engine.plan import StepPlan
from engine.request import PoolingOutput, PoolingRequest
from engine.runner import StepHandle
from engine.scheduler.base import Scheduler


class RunLoop:
    """Owns: the steps in flight, the recorded plan and the outputs of one run.

    A refused request is set aside with its reason; it never touches another.
    """

    def __init__(
        self,
        *,
        executor: Executor,
        scheduler: Scheduler,
        max_in_flight: int,
        check: Callable[[PoolingRequest], None],
    ) -> None:
        self._executor, self._scheduler, self._check = executor, scheduler, check
        self._max_in_flight = max_in_flight
        self._in_flight: deque[StepHandle] = deque()
        self._requests: dict[str, PoolingRequest] = {}
        self._replayed = False
        self.refused: dict[str, str] = {}
        self.outputs: dict[str, PoolingOutput] = {}
        self.plan: list[StepPlan] = []

    def run(
        self,
        requests: Sequence[PoolingRequest],
        arrivals: Sequence[int] = (),
        *,
        replayed: bool = False,
    ) -> Mapping[str, PoolingOutput]:
        """Run to the end. `arrivals[i]`: step before which request i arrives.

        Under a replayed plan a refused request is an error at once: its steps cannot be left out.
        """
        self._replayed = replayed
        if arrivals and len(arrivals) != len(requests):
            raise ConfigurationError(
                f"arrivals has {len(arrivals)} entries for {len(requests)} requests; give one each"
            )
        waiting = deque(
            sorted(
                zip(arrivals or [0] * len(requests), range(len(requests)), strict=True),
            )
        )
        while replayed and waiting:  # the plan already says when each request's steps come
            self._admit(requests[waiting.popleft()[1]])
        while waiting or self._scheduler.has_work or self._in_flight:
            idle = not self._scheduler.has_work and not self._in_flight
            while waiting and (idle or waiting[0][0] <= len(self.plan)):
                self._admit(requests[waiting.popleft()[1]])
                idle = False
            self._advance()
        return self.outputs

    def _admit(self, request: PoolingRequest) -> None:
        name = request.request_id
        try:
            if name in self._requests:
                raise RequestError(f"request id {name!r} is used twice in one run")
            self._check(request)
            self._scheduler.add(name, request.num_tokens)
        except (RequestError, ConfigurationError) as error:
            if self._replayed:
                raise
            self.refused[name] = str(error)
            return
        self._requests[name] = request

    def _advance(self) -> None:
        """Submit one step if there is room and work, else take the oldest result."""
        step = None
        if len(self._in_flight) < self._max_in_flight:
            step = self._scheduler.schedule()
        if step is None:
            if self._in_flight:
                self._take()
            return
        self.plan.append(step.plan)
        self._in_flight.append(self._executor.submit(step, self._requests))

    def _take(self) -> None:
        handle = self._in_flight.popleft()
        for output in handle.result():
            self.outputs[output.request_id] = output
        self._scheduler.complete(handle.plan)
        self._scheduler.check_integrity()

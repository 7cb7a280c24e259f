"""One run: admit, schedule, submit, take results, keeping as many steps in flight as allowed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from engine.errors import ConfigurationError, RequestError
from engine.executor.base import Executor
from engine.handle import StepHandle
from engine.kv.prefix import Prefix
from engine.plan import StepPlan
from engine.request import PoolingFailure, PoolingOutput, PoolingRequest, PoolingResult
from engine.scheduler.base import Scheduler
from engine.scheduler.memory import MemoryWitness


class RunLoop:
    """Owns: the steps in flight, the recorded plan and the outputs of one run.

    A refused request, or one that failed, is set aside with its reason; it never touches another.
    """

    def __init__(
        self,
        *,
        executor: Executor,
        scheduler: Scheduler,
        max_in_flight: int,
        check: Callable[[PoolingRequest], None],
        prefix: Callable[[PoolingRequest], Prefix],
        check_ledgers: bool,
    ) -> None:
        self._executor, self._scheduler = executor, scheduler
        self._check, self._prefix = check, prefix
        self._max_in_flight, self._check_ledgers = max_in_flight, check_ledgers
        self._in_flight: deque[StepHandle] = deque()
        self._requests: dict[str, PoolingRequest] = {}
        self._replayed = False
        self.refused: dict[str, str] = {}
        self.failed: dict[str, str] = {}
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
            for result in self.advance():
                if isinstance(result, PoolingFailure):
                    self.failed[result.request_id] = result.reason
                else:
                    self.outputs[result.request_id] = result
        return self.outputs

    @property
    def has_work(self) -> bool:
        """Whether there is a step to submit or a result to take."""
        return self._scheduler.has_work or bool(self._in_flight)

    @property
    def memory(self) -> MemoryWitness:
        """What the ledger of the KV memory counted so far."""
        return self._scheduler.memory

    def admit(self, request: PoolingRequest) -> None:
        """Queue a request, between steps; RequestError or ConfigurationError if it cannot run."""
        name = request.request_id
        if name in self._requests:
            raise RequestError(f"request id {name!r} is used twice in one run")
        self._check(request)
        self._scheduler.add(
            name, request.num_tokens, priority=request.priority, prefix=self._prefix(request)
        )
        self._requests[name] = request

    def abort(self, request_id: str) -> None:
        """Run no more of a request and drop its answer; an id that is not (any more) is ignored."""
        if self._requests.pop(request_id, None) is None:
            return
        self._scheduler.abort(request_id)
        self._executor.abort(request_id)

    def advance(self) -> Sequence[PoolingResult]:
        """Submit one step if there is room and work, else take what the oldest one finished."""
        step = None
        if len(self._in_flight) < self._max_in_flight:
            step = self._scheduler.schedule()
        if step is None:
            return self._take() if self._in_flight else ()
        self.plan.append(step.plan)
        self._in_flight.append(self._executor.submit(step, self._requests))
        self._check_memory()
        return ()

    def _admit(self, request: PoolingRequest) -> None:
        try:
            self.admit(request)
        except (RequestError, ConfigurationError) as error:
            if self._replayed:
                raise
            self.refused[request.request_id] = str(error)

    def _take(self) -> Sequence[PoolingResult]:
        handle = self._in_flight.popleft()
        results = handle.result()
        self._scheduler.complete(handle.plan)
        self._check_memory()
        return [result for result in results if result.request_id in self._requests]

    def _check_memory(self) -> None:
        if self._check_ledgers:
            self._scheduler.check_integrity()

"""Requests of many connections, run together by one engine."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from engine.engine import Engine
from engine.errors import ConfigurationError, EngineError, RequestError
from engine.request import PoolingFailure, PoolingOutput, PoolingRequest
from engine.server.config import QueueLimits
from engine.server.metrics import Metrics
from engine.session import Session

STEPS_PER_SESSION = 256
"""What a session records grows with its steps; one that long ends when what it runs is through."""
MAX_REBUILDS = 1
"""Engines that may fail before the server gives up: one loss may be an accident, two are not."""

_log = logging.getLogger("parity.server")


class OverloadedError(Exception):
    """The queue is full; `retry_after_s` is when there should be room for this much."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TooLargeError(Exception):
    """Requests that no empty queue could hold."""


class UnavailableError(Exception):
    """The engine failed or is being shut down; the request was not answered."""


class FailedError(Exception):
    """The request's own head raised; nothing else that ran was touched."""


@dataclass(slots=True, eq=False)
class _Job:
    request: PoolingRequest
    future: Future[PoolingOutput] = field(default_factory=Future)


class Batcher:
    """Owns: the engine, the one thread that calls it, and the bounded queue in front of it.

    Requests join the engine's steps as they come. An answer or a failure reaches its own future
    only; cancelling the future aborts the request. When the engine itself fails, what it ran
    fails with UnavailableError and a new engine takes its place, once; the second failure is final:
    everything is refused and `on_death` is called.
    """

    def __init__(
        self,
        build: Callable[[], Engine],
        limits: QueueLimits,
        metrics: Metrics,
        *,
        on_death: Callable[[], None] = lambda: None,
    ) -> None:
        """Build the engine here, so that what is wrong with it is raised where it can be shown."""
        self._build, self._limits, self._metrics, self._on_death = build, limits, metrics, on_death
        self.engine = build()
        """For its facts; only the thread runs it."""
        self._changed = threading.Condition()
        self._inbox: deque[_Job] = deque()
        self._aborted: deque[str] = deque()
        self._running: dict[str, _Job] = {}  # the thread's own
        self._open: set[str] = set()  # ids of what is unanswered
        self._num_tokens = 0
        self._done_tokens, self._busy_s = 0, 0.0
        self._num_rebuilds = 0
        self._refuses = False
        self._stopping = False
        self._trouble = ""
        self.dead = False
        metrics.watch_queue(lambda: len(self._open), lambda: self._num_tokens)
        self._thread = threading.Thread(target=self._live, name="parity-engine", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why requests cannot be answered at this moment; empty when they can."""
        return "the server is shutting down" if self._refuses else self._trouble

    def submit(self, requests: Sequence[PoolingRequest]) -> list[Future[PoolingOutput]]:
        """Queue all of them or, with OverloadedError, TooLargeError or UnavailableError, none.

        A future ends with the output, or with RequestError, FailedError or UnavailableError.
        RequestError here and now: an id is that of another unanswered request.
        """
        prompts, tokens = len(requests), sum(request.num_tokens for request in requests)
        limits = self._limits
        if prompts > limits.max_prompts or tokens > limits.max_tokens:
            raise TooLargeError(
                f"{prompts} prompts of {tokens} tokens in one request: expected at most "
                f"{limits.max_prompts} prompts and {limits.max_tokens} tokens. Split the request"
            )
        jobs = [_Job(request) for request in requests]
        with self._changed:
            if self._refuses or self.dead:
                raise UnavailableError(self.trouble)
            if (
                len(self._open) + prompts > limits.max_prompts
                or self._num_tokens + tokens > limits.max_tokens
            ):
                raise OverloadedError(
                    f"{len(self._open)} prompts of {self._num_tokens} tokens wait or run; no "
                    f"room for {prompts} of {tokens}: expected at most {limits.max_prompts} and "
                    f"{limits.max_tokens} together. Try again later",
                    self._retry_after_s(tokens),
                )
            names = {request.request_id for request in requests}
            if len(names) < prompts or names & self._open:
                raise RequestError("a request id is used twice: give every request one of its own")
            self._open |= names
            self._num_tokens += tokens
            self._inbox.extend(jobs)
            self._changed.notify()
        for job in jobs:
            job.future.add_done_callback(partial(self._ended, job))
        return [job.future for job in jobs]

    def refuse_new(self) -> None:
        """Answer what is queued and nothing more. Takes no lock: a signal handler may call it."""
        self._refuses = True

    def stop(self, timeout_s: float | None = None) -> None:
        """Refuse new requests, finish those queued, close the engine. Returns when done."""
        self.refuse_new()
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is None:
            self.engine.close()
        else:
            self._thread.join(timeout_s)

    def _retry_after_s(self, tokens: int) -> int:
        """Seconds until `tokens` more fit, at the speed so far; between 1 and 60."""
        if not self._done_tokens:
            return 1
        excess = max(self._num_tokens + tokens - self._limits.max_tokens, tokens)
        return min(max(math.ceil(excess * self._busy_s / self._done_tokens), 1), 60)

    def _ended(self, job: _Job, future: Future[PoolingOutput]) -> None:
        """Every future comes here once, from whichever thread ended it."""
        with self._changed:
            self._open.discard(job.request.request_id)
            self._num_tokens -= job.request.num_tokens
            if future.cancelled():
                self._aborted.append(job.request.request_id)
                self._changed.notify()
        if future.cancelled():
            self._metrics.prompt_ended("aborted")
        elif (error := future.exception()) is None:
            self._metrics.prompt_ended("answered", job.request.num_tokens)
        else:
            refused = isinstance(error, RequestError | ConfigurationError)
            self._metrics.prompt_ended("refused" if refused else "failed")

    # ------------------------------------------------------------------------ the engine's thread
    def _live(self) -> None:
        while True:
            try:
                while self._wait():
                    session = self.engine.session()
                    self._serve(session)
                    ranks = session.close().ranks
                    self._metrics.found_hazards(sum(len(rank.hazards) for rank in ranks))
            except Exception as error:  # noqa: BLE001 - of an engine that raised nothing is known
                if not self._replace(error):
                    return
            else:
                self.engine.close()
                return

    def _wait(self) -> bool:
        """Until there is something to do. False: there will be nothing any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._inbox or self._aborted or self._stopping)
            return bool(self._inbox or self._aborted)

    def _serve(self, session: Session) -> None:
        """Until there is nothing to do and either the server stops or the session is long."""
        while True:
            is_long = session.num_steps >= STEPS_PER_SESSION
            if not session.has_work and (is_long or not self._wait()):
                return
            if not is_long:
                self._admit(session)
            self._abort(session)
            if session.has_work:
                self._advance(session)

    def _admit(self, session: Session) -> None:
        with self._changed:
            arrived = list(self._inbox)
            self._inbox.clear()
            self._running.update({job.request.request_id: job for job in arrived})
        for job in arrived:
            if job.future.cancelled():
                del self._running[job.request.request_id]
                continue
            try:
                session.admit(job.request)
            except (RequestError, ConfigurationError) as error:
                self._settle(job.request.request_id, error)

    def _abort(self, session: Session) -> None:
        while self._aborted:
            name = self._aborted.popleft()
            session.abort(name)
            self._running.pop(name, None)

    def _advance(self, session: Session) -> None:
        began, steps = time.perf_counter(), session.num_steps
        results = session.advance()
        self._busy_s += time.perf_counter() - began
        if session.num_steps > steps:
            self._metrics.stepped(session.num_tokens)
        for result in results:
            if isinstance(result, PoolingFailure):
                _log.error("request %s failed: %s", result.request_id, result.reason)
                self._settle(result.request_id, FailedError(result.reason))
            else:
                self._done_tokens += result.num_prompt_tokens
                self._settle(result.request_id, result)

    def _settle(self, name: str, result: PoolingOutput | Exception) -> None:
        """End a future, unless its owner has cancelled it meanwhile."""
        job = self._running.pop(name, None)
        if job is None or not job.future.set_running_or_notify_cancel():
            return
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)

    def _replace(self, error: Exception) -> bool:
        """Fail what ran and start a new engine; False when there is none to be had."""
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        self._trouble = f"the engine failed ({told}) and is being started again"
        _log.error("the engine failed with %d prompts running", len(self._running), exc_info=error)
        for name in list(self._running):
            self._settle(
                name, UnavailableError(f"the engine failed on this or another request: {told}")
            )
        _close(self.engine)
        if self._num_rebuilds < MAX_REBUILDS:
            self._num_rebuilds += 1
            try:
                self.engine = self._build()
            except Exception as again:  # noqa: BLE001 - whatever it was, there is no engine
                told = f"{type(again).__name__}: {again}".splitlines()[0]
                _log.exception("no new engine could be started")
            else:
                self._metrics.rebuilt()
                self._trouble = ""
                return True
        self._die(f"the engine failed ({told}); the server ends")
        return False

    def _die(self, why: str) -> None:
        with self._changed:
            self.dead, self._trouble = True, why
            left = list(self._inbox)
            self._inbox.clear()
            self._running = {job.request.request_id: job for job in left}
        for name in list(self._running):
            self._settle(name, UnavailableError(why))
        self._on_death()


def _close(engine: Engine) -> None:
    """Close an engine that failed; what it leaves behind is logged, since a new one follows."""
    try:
        engine.close()
    except (EngineError, OSError, RuntimeError):
        _log.exception("the failed engine could not be closed cleanly")

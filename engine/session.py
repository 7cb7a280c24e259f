"""An open-ended run: requests are admitted, and aborted, while others run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.errors import LedgerError
from engine.executor.base import Executor, RunAccount
from engine.loop import RunLoop
from engine.plan import StepPlan
from engine.request import PoolingRequest, PoolingResult
from engine.witness import RunWitness


class Session:
    """Owns: one run of an engine that has no fixed list of requests. For one thread.

    What a run records (its plan, the operation log) grows with its steps, so whoever serves for
    long closes a session now and then, when it has no work, and opens the next.
    """

    def __init__(
        self, loop: RunLoop, executor: Executor, attest: Callable[[RunLoop, RunAccount], RunWitness]
    ) -> None:
        self._loop, self._executor, self._attest = loop, executor, attest
        self.witness: RunWitness | None = None
        """What the run really did; None until it is closed."""

    @property
    def plan(self) -> Sequence[StepPlan]:
        """The steps submitted so far."""
        return tuple(self._loop.plan)

    @property
    def num_steps(self) -> int:
        """Steps submitted so far."""
        return len(self._loop.plan)

    @property
    def num_tokens(self) -> int:
        """Tokens of the step submitted last; 0 before the first."""
        return self._loop.plan[-1].num_tokens if self._loop.plan else 0

    @property
    def has_work(self) -> bool:
        """Whether some admitted request has no answer yet."""
        return self._loop.has_work

    def admit(self, request: PoolingRequest) -> None:
        """Queue a request. Raises RequestError or ConfigurationError; the others go on."""
        self._loop.admit(request)

    def abort(self, request_id: str) -> None:
        """Give a request up: no more of it is scheduled and no answer of it comes.

        An id that is not known, or not any more, is ignored.
        """
        self._loop.abort(request_id)

    def advance(self) -> Sequence[PoolingResult]:
        """Submit a step, or wait for the oldest one's results. Raises WorkerError if a rank died.

        After an exception the session and its engine are of no more use.
        """
        return self._loop.advance()

    def close(self) -> RunWitness:
        """End the run and say what it did. Raises LedgerError while there is work to be lost."""
        if self.has_work:
            raise LedgerError("a session was closed with work left: abort it or advance to its end")
        self.witness = self._attest(self._loop, self._executor.end_run())
        return self.witness

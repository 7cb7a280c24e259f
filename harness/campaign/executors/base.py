"""What a campaign asks of whoever executes its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness.campaign.spec import Job, RunSpec


class ExecutorError(RuntimeError):
    """An executor that cannot be had; the message says what to do."""


class WorkerLost(RuntimeError):  # noqa: N818 - what happened, as the notice of the run tells it
    """The worker will never say anything again; the message says why."""


class Worker(Protocol):
    """Does one job at a time, in a process of its own."""

    @property
    def alive(self) -> bool:
        """False once it is known to be lost."""
        ...

    def begin(self, job: Job) -> None:
        """Hand it a job; it has none at hand."""
        ...

    def hear(self) -> Mapping[str, Any] | None:
        """The next message about the job (`harness.campaign.worker`), None if there is none yet.

        Raises:
            WorkerLost: its process died.
        """
        ...

    def kill(self) -> None:
        """End it at once."""
        ...

    def stop(self) -> None:
        """Let it go: with its job done it ends by itself, else it is killed."""
        ...


class Executor(Protocol):
    """Makes workers."""

    def worker(self, spec: RunSpec, folder: Path) -> Worker:
        """A fresh worker for the jobs of `spec`. What it computes gets into the run `folder`."""
        ...

    def wait(self, workers: Sequence[Any], timeout_s: float) -> None:
        """Return when one of these (its own) has something to say, or after the timeout."""
        ...

    def close(self) -> None:
        """Give back what was started; its workers were stopped before."""
        ...

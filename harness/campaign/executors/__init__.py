"""Where a campaign's jobs are executed: by processes of this machine, or on the nodes of Ray.

The driver is the same for both: it hands out jobs, writes what comes back, and judges. So the run
folder does not tell which executor made it.
"""

from __future__ import annotations

from harness.campaign.executors.base import Executor, ExecutorError
from harness.campaign.executors.local import LocalExecutor

EXECUTORS = ("local", "ray")


def executor_named(name: str, *, workers: int = 2, address: str | None = None) -> Executor:
    """Started and ready to make workers; close it.

    `workers`: how many there will be at once. `address`: of a running Ray; None: one of its own.

    Raises:
        ExecutorError: no such executor; an address for one that has none; Ray is not installed, or
            does not answer at the address.
    """
    if name not in EXECUTORS:
        raise ExecutorError(f"no executor {name!r}; expected one of {', '.join(EXECUTORS)}")
    if name == "local":
        if address is not None:
            raise ExecutorError(
                f"--ray-address {address} needs --executor ray, got --executor local"
            )
        return LocalExecutor()
    # Only now: Ray is an extra, and importing it takes seconds.
    from harness.campaign.executors.cluster import RayExecutor  # noqa: PLC0415

    return RayExecutor(workers=workers, address=address)


__all__ = ["EXECUTORS", "Executor", "ExecutorError", "LocalExecutor", "executor_named"]

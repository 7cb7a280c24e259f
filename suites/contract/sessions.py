"""Real processes in a session of their own: waiting for them, and counting who is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

LIVENESS_S = 200
"""How long to wait for what must happen; nothing is measured against it."""
TEST_TIMEOUT_S = 3 * LIVENESS_S
"""For a test that waits for a start and for an end."""


def living(session: int) -> list[str]:
    """Command lines of the processes of a session that run; those that ended do not count."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def left_of(session: int) -> list[str]:
    """The processes of a session that are left when all had time to end."""
    deadline = time.monotonic() + LIVENESS_S
    while (left := living(session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when `happened`; fails the test, with its log, when the process ends before."""
    deadline = time.monotonic() + LIVENESS_S
    while not happened():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def end_session(session: int) -> None:
    """Kill whatever a failed test has left of it."""
    if living(session):
        os.killpg(session, signal.SIGKILL)

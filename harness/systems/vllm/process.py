"""One vLLM engine in processes of its own: started, asked, and gone with all it started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from harness.record import Json
from harness.systems.base import Refused, SystemFailed

LOOK_S = 0.5
"""How often a silent child is looked after."""
CHILD = Path(__file__).parent / "inside" / "child.py"
_ERROR = re.compile(r"(?:^|[\])] )((?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt): .*)$")


class Child:
    """Owns: the child's process group, its pipes and its log. Closing ends every process of it."""

    def __init__(
        self,
        python: Path,
        folder: Path,
        environment: Mapping[str, str],
        *,
        script: Path = CHILD,
    ) -> None:
        self.log, self.steps = folder / "log", folder / "steps"
        with self.log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [str(python), str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **environment, "PARITY_STEP_LOG": str(self.steps)},
                start_new_session=True,  # its workers die with it, whatever it has started
            )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._rest = bytearray()

    def ask(self, message: Mapping[str, Json], *, timeout_s: float, what: str) -> dict[str, Json]:
        """The child's answer. Raises Refused or SystemFailed: it said no, failed, died, or hung."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SystemFailed(f"{what}: {self._ended()}") from error
        line = self._line(timeout_s, what)
        try:
            found: dict[str, Json] = json.loads(line)
        except ValueError as error:
            raise SystemFailed(f"{what}: {line[:80]!r} is no answer{self._cause()}") from error
        if "refused" in found:
            raise Refused(str(found["refused"]))
        if "failed" in found:
            raise SystemFailed(f"{what}: {found['failed']}{self._cause()}")
        return found

    def _line(self, timeout_s: float, what: str) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        searched = 0  # token embeddings are lines of many megabytes
        while (end := self._rest.find(b"\n", searched)) < 0:
            searched = len(self._rest)
            left = deadline - time.monotonic()
            if left <= 0:
                raise SystemFailed(f"{what}: no answer within {timeout_s:g} s{self._cause()}")
            if not self._selector.select(min(left, LOOK_S)):
                # What it has started may hold the pipe open when it is itself long gone.
                if self._process.poll() is not None:
                    raise SystemFailed(f"{what}: {self._ended()}")
                continue
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                raise SystemFailed(f"{what}: {self._ended()}")
            self._rest += part
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    def _ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        code = self._process.returncode
        how = f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        return f"the engine's process {how}{self._cause()}"

    def _cause(self) -> str:
        """The first error that its log tells of: the root cause is mostly in another process."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        told = [m.group(1) for line in lines if (m := _ERROR.search(line.strip()))]
        return f"; its log says: {told[0][:300]}" if told else ""

    def close(self) -> None:
        """End the child and everything it has started, and wait for that."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._selector.close()
        for kind, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, kind)
            deadline = time.monotonic() + patience
            while _alive(self._process.pid) and time.monotonic() < deadline:
                self._process.poll()
                time.sleep(0.05)
        self._process.wait()


def _alive(group: int) -> bool:
    """Whether a process of the group still runs; one that is only waiting to be reaped does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, member = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue  # it ended while we looked
        if int(member) == group and state not in ("Z", "X"):
            return True
    return False

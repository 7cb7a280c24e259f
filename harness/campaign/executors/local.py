"""Workers that are processes of this machine, each at the other end of a pipe."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from harness.campaign import worker
from harness.campaign.executors.base import WorkerLost
from harness.campaign.spec import Job, RunSpec


class LocalWorker:
    """Owns: one spawned process and the pipe to it."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        # Not a daemon: it starts rank processes of its own. It ends when the pipe closes.
        self._process = multiprocessing.get_context("spawn").Process(
            target=worker.main,
            args=(theirs, json.dumps(spec.to_json()), str(folder)),
            name=worker.NAME,
        )
        self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def begin(self, job: Job) -> None:
        self.pipe.send_bytes(json.dumps({"verb": "run", "job": asdict(job)}).encode())

    def hear(self) -> Mapping[str, Any] | None:
        try:
            if not self.pipe.poll(0):
                return None
            message: Mapping[str, Any] = json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError) as error:
            self._process.join(timeout=5)
            raise WorkerLost(f"its worker died (exit code {self._process.exitcode})") from error
        return message

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def stop(self) -> None:
        with suppress(OSError):  # already gone; joined below
            self.pipe.send_bytes(json.dumps({"verb": "stop"}).encode())
        self.pipe.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self.kill()


class LocalExecutor:
    """Owns nothing: a worker is all there is."""

    def worker(self, spec: RunSpec, folder: Path) -> LocalWorker:
        return LocalWorker(spec, folder)

    def wait(self, workers: Sequence[Any], timeout_s: float) -> None:
        wait([each.pipe for each in workers], timeout=timeout_s)

    def close(self) -> None:
        """There is nothing to give back."""

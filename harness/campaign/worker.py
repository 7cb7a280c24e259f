"""A campaign's worker process: takes jobs, sends back records as they become known."""

from __future__ import annotations

import json
import multiprocessing
import os
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from harness.record import to_json

if TYPE_CHECKING:
    from harness.campaign.spec import Job, RunSpec

NAME = "parity-worker"
"""Of a worker's process, by which rank processes and plug-ins know it."""

DRIVER_GONE = 3
"""Exit code of a worker whose driver ended without a word; nobody is left to read it."""


def main(connection: Connection, spec_json: str, folder: str) -> None:
    """Entry point of the spawned process; ends on `stop` or when the driver is gone."""
    begin()

    from harness.campaign.spec import Job, RunSpec  # noqa: PLC0415 - after the environment is set

    spec = RunSpec.from_json(json.loads(spec_json))
    while True:
        try:
            message = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        if message["verb"] == "stop":
            return
        for said in messages(spec, Job.from_json(message["job"]), Path(folder)):
            _send(connection, said)


def messages(spec: RunSpec, job: Job, folder: Path) -> Iterator[dict[str, Any]]:
    """All about one job, plain data: a `record` each, at last either `done` or `failed`."""
    from harness.campaign.workbench import Workbench  # noqa: PLC0415 - it loads torch

    bench = None
    try:
        asked = spec.in_array(job.checkpoint) if job.array else spec
        bench = Workbench(asked, job.checkpoint, folder)
        for record in bench.run(job):
            yield {"record": to_json(record)}
        yield {"done": asdict(job), "phases": bench.clock.phases}
    except Exception as error:  # noqa: BLE001 - the driver must learn of any failure
        text = f"{type(error).__name__}: {error}"
        yield {"failed": text, "traceback": traceback.format_exc()}
    finally:
        if bench is not None:
            bench.close()


def begin() -> None:
    """Make a spawned process ready to compute, and have it end when its driver is gone."""
    # Without it a worker that compiles or computes would outlive a killed driver by minutes.
    Thread(target=_end_with_driver, name="parity-driver-watch", daemon=True).start()
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")  # before anything loads torch

    from harness.oracle.warmup import settle_vector_math  # noqa: PLC0415 - it loads torch

    settle_vector_math()


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(DRIVER_GONE)


def _send(connection: Connection, message: dict[str, Any]) -> None:
    blob = json.dumps(message, allow_nan=False).encode()
    try:
        connection.send_bytes(blob)
    except OSError:  # the driver has closed its end or is gone; there is nobody to tell
        os._exit(DRIVER_GONE)

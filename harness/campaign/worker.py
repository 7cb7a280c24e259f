"""A campaign's worker process: takes jobs, sends back records as they become known."""

from __future__ import annotations

import json
import multiprocessing
import os
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

from harness.record import to_json

DRIVER_GONE = 3
"""Exit code of a worker whose driver ended without a word; nobody is left to read it."""


def main(connection: Connection, spec_json: str, folder: str) -> None:
    """Entry point of the spawned process; ends on `stop` or when the driver is gone."""
    begin()

    from harness.campaign.spec import Job, RunSpec  # noqa: PLC0415 - after the environment is set
    from harness.campaign.workbench import Workbench  # noqa: PLC0415

    spec = RunSpec.from_json(json.loads(spec_json))
    while True:
        try:
            message = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        if message["verb"] == "stop":
            return
        job = Job.from_json(message["job"])
        bench = None
        try:
            asked = spec.in_array(job.checkpoint) if job.array else spec
            bench = Workbench(asked, job.checkpoint, Path(folder))
            for record in bench.run(job):
                _send(connection, {"record": to_json(record)})
            _send(connection, {"done": message["job"], "phases": bench.clock.phases})
        except Exception as error:  # noqa: BLE001 - the driver must learn of any failure
            text = f"{type(error).__name__}: {error}"
            _send(connection, {"failed": text, "traceback": traceback.format_exc()})
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

"""The worker on a node of a cluster. Light to import: what loads torch waits for `begin`."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.campaign import worker
from harness.campaign.executors.parcel import Parcel, Sent


class NodeWorker:
    """Owns: a folder on this node in the run folder's place; what gets into it is sent along."""

    def __init__(
        self, spec_json: str, parcel: Parcel, expected: Mapping[str, str], threads: str | None
    ) -> None:
        """`expected`: the driver's software. `threads`: its OMP_NUM_THREADS, None: not set."""
        # Ray sets it to 1; a worker computes with as many threads as one beside the driver would.
        os.environ.pop("OMP_NUM_THREADS", None)
        if threads is not None:
            os.environ["OMP_NUM_THREADS"] = threads
        multiprocessing.current_process().name = worker.NAME
        self._place = TemporaryDirectory(prefix="parity-node-")
        self._folder = Path(self._place.name)
        self._spec_json = parcel.laid_out(spec_json, self._folder)
        self._expected = expected
        self._sent: set[str] = set()
        worker.begin()

    def run(self, job_json: str) -> Iterator[tuple[str, Sent]]:
        """Each message of the job (JSON), with the output files that are new since the last."""
        from harness.campaign.manifest import software  # noqa: PLC0415 - it loads torch
        from harness.campaign.spec import Job, RunSpec  # noqa: PLC0415

        if text := differing(self._expected, software()):
            yield json.dumps({"failed": text, "traceback": ""}), {}
            return
        spec = RunSpec.from_json(json.loads(self._spec_json))
        job = Job.from_json(json.loads(job_json))
        for message in worker.messages(spec, job, self._folder):
            yield json.dumps(message, allow_nan=False), self._new()

    def _new(self) -> Sent:
        found = {
            path.name: path.read_bytes()
            for path in (self._folder / "outputs").glob("*.safetensors")
            if path.name not in self._sent
        }
        self._sent |= found.keys()
        return found


def differing(expected: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Why answers of this node may not stand beside the driver's; empty: they may."""
    others = [
        f"{name} {here.get(name)!r}, expected {expected.get(name)!r}"
        for name in sorted({*expected, *here})
        if expected.get(name) != here.get(name)
    ]
    if not others:
        return ""
    return f"its node has {'; '.join(others)}: install there what the driver has"

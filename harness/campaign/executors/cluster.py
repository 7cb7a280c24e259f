"""Workers that are Ray actors, on whichever node Ray puts them. Needs the `ray` extra."""

from __future__ import annotations

import json
import logging
import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.campaign.executors.base import ExecutorError, WorkerLost
from harness.campaign.executors.node import NodeWorker
from harness.campaign.executors.parcel import Parcel, unpack
from harness.campaign.manifest import software
from harness.campaign.spec import Job, RunSpec

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent home; read at import

try:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ModuleNotFoundError as missing:
    raise ExecutorError(
        f"--executor ray needs the extra `ray` (no module {missing.name}): "
        "pip install 'pooling-parity[ray]', or -e '.[ray]' in a checkout"
    ) from missing

CONNECT_S = 5.0
"""For the first answer of a Ray that is said to run at an address."""
STORE_BYTES = 256 << 20
"""Object store of a Ray of our own: records pass through it, a few kilobytes each."""


class RayWorker:
    """Owns: one actor and the stream of messages about its job."""

    def __init__(self, spec: RunSpec, folder: Path, node: str) -> None:
        """`node`: id of the node to be on, as long as it lives."""
        self._folder, self.node = folder, node
        # Ray's default for an actor: a CPU must be free to place it, none is held while it runs.
        # So the worker that replaces a lost one always finds a place on a node that lives.
        self._actor = (
            ray.remote(NodeWorker)
            .options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True),
                max_restarts=0,
                max_task_retries=0,
            )
            .remote(
                json.dumps(spec.to_json()),
                Parcel.of(spec),
                software(),
                os.environ.get("OMP_NUM_THREADS"),
            )
        )
        self.said: Any = None
        self.alive = True

    def begin(self, job: Job) -> None:
        stream = self._actor.run.options(num_returns="streaming")
        self.said = stream.remote(json.dumps(asdict(job)))

    def hear(self) -> Mapping[str, Any] | None:
        if not ray.wait([self.said], timeout=0)[0]:
            return None
        try:
            blob, files = ray.get(next(self.said))
        except (StopIteration, ray.exceptions.RayError) as error:
            self.alive = False
            raise WorkerLost(f"its worker died ({_reason(error)})") from error
        unpack(self._folder, files)
        message: Mapping[str, Any] = json.loads(blob)
        return message

    def kill(self) -> None:
        self.alive = False
        with suppress(ray.exceptions.RayError):  # gone already
            ray.kill(self._actor)

    def stop(self) -> None:
        self.kill()  # between jobs it holds nothing


class RayExecutor:
    """Owns: the connection to a Ray, and that Ray if it was started here."""

    def __init__(self, *, workers: int, address: str | None) -> None:
        self._workers: list[RayWorker] = []
        quiet: dict[str, Any] = {
            "log_to_driver": False,
            "logging_level": logging.ERROR,
            "configure_logging": False,
        }
        if address is None:
            try:
                ray.init(
                    address="local",
                    num_cpus=workers,
                    object_store_memory=STORE_BYTES,
                    include_dashboard=False,
                    **quiet,
                )
            except Exception as error:  # Ray raises bare Exceptions here
                ray.shutdown()
                raise ExecutorError(
                    f"--executor ray: Ray did not start here ({_reason(error)}); its logs are in "
                    "/tmp/ray/session_latest/logs. Give --ray-address of one that runs"
                ) from error
            return
        _knock(address)
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ExecutorError(
                f"--ray-address {address}: no Ray to connect to ({_reason(error)}); `ray status` "
                "says whether one runs, `ray start --head` starts one"
            ) from error

    def worker(self, spec: RunSpec, folder: Path) -> RayWorker:
        """On the live node that has the fewest of ours: left to Ray, all may share one."""
        used = Counter(each.node for each in self._workers if each.alive)
        nodes = sorted(
            node["NodeID"]
            for node in ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU", 0)
        )
        if not nodes:
            raise ExecutorError(
                "--executor ray: no node of the cluster that lives has a CPU; add one with "
                "`ray start --address HOST:PORT`, then `parity run --resume` goes on"
            )
        made = RayWorker(spec, folder, min(nodes, key=lambda node: used[node]))
        self._workers.append(made)
        return made

    def wait(self, workers: Sequence[Any], timeout_s: float) -> None:
        ray.wait([each.said for each in workers], timeout=timeout_s, fetch_local=False)

    def close(self) -> None:
        ray.shutdown()


def _knock(address: str) -> None:
    """Ray itself tries for a minute, and says little. `auto` and the like are Ray's to resolve."""
    place = address.removeprefix("ray://")
    if place in {"auto", "local"}:
        return
    host, colon, port = place.rpartition(":")
    try:
        if not colon or not host:
            raise ValueError("expected HOST:PORT")
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ExecutorError(
            f"--ray-address {address}: nothing answers there ({error}); expected HOST:PORT of a "
            "running Ray, as `ray start --head` prints it, or no address for one of its own"
        ) from error


def _reason(error: BaseException) -> str:
    """The first line that says something, without a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__

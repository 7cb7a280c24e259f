"""The body of one rank's process: a loop over the driver's messages."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
import traceback
from dataclasses import asdict, replace
from datetime import timedelta
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

import torch

from engine.assembly import build_runner
from engine.collectives import ProcessAllReduce
from engine.config import EngineConfig, config_from_json
from engine.determinism import warm_vector_math
from engine.executor import wire
from engine.handle import RunnerHandle
from engine.links import ProcessLink
from engine.memory import RunnerLimits
from engine.placement import Place
from engine.plugins import Plugins
from engine.request import PoolingFailure, PoolingOutput, PoolingRequest
from engine.resources import Resources
from engine.runner import Runner
from engine.stream import create_device
from engine.stream.base import Device


def main(connection: Connection, config_json: str, limits_json: str, rank: int, store: str) -> None:
    """Entry point of the spawned process. Every exception becomes one `error` message."""
    # An interrupt at the keyboard reaches every process of the terminal; the driver decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A rank that waits for another rank, or hangs, does not hear its own pipe close.
    Thread(target=_end_with_driver, name="parity-driver-watch", daemon=True).start()
    config = config_from_json(json.loads(config_json))
    # torch's own stub leaves the stores out.
    files = torch.distributed.FileStore(store, config.parallel.num_ranks)  # type: ignore[attr-defined]
    serve(connection, config, RunnerLimits(**json.loads(limits_json)), rank, files)


def serve(
    connection: Connection, config: EngineConfig, limits: RunnerLimits, rank: int, store: Any
) -> None:
    """Be one rank until the driver closes or is gone; the ranks meet at `store`."""
    try:
        worker = Worker(connection, config, limits, rank, store)
        wire.send(connection, {"ready": True})
        worker.serve()
    except (EOFError, KeyboardInterrupt):
        return
    except Exception as error:  # noqa: BLE001 - the driver must learn of any failure
        text = f"{type(error).__name__}: {error}"
        wire.send(connection, {"error": text, "traceback": traceback.format_exc()})


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


class Worker:
    """Owns: one rank's runner and device, in a process of its own."""

    def __init__(
        self,
        connection: Connection,
        config: EngineConfig,
        limits: RunnerLimits,
        rank: int,
        store: Any,
    ) -> None:
        torch.set_num_threads(config.execution.num_threads)
        warm_vector_math()
        size, place = config.parallel.num_ranks, Place.of(config.parallel, rank)
        cuda = config.device.startswith("cuda")
        if cuda:  # NCCL wants a device for each rank
            torch.cuda.set_device(rank % torch.cuda.device_count())
        torch.distributed.init_process_group(
            "nccl" if cuda else "gloo",
            store=store,
            rank=rank,
            world_size=size,
            timeout=timedelta(
                seconds=max(config.parallel.worker_timeout_s, config.parallel.startup_timeout_s)
            ),
        )
        self._connection = connection
        self._device: Device = create_device("cuda" if cuda else "cpu", config.stream, size)
        resources = Resources(config, rank=rank)
        source, target = place.source, place.target
        self._runner: Runner = build_runner(
            config=config,
            limits=limits,
            resources=resources,
            device=self._device,
            place=place,
            receive_from=None if source is None else ProcessLink(self._device, rank, source),
            send_to=None if target is None else ProcessLink(self._device, rank, target),
            all_reduce=self._sum(place, limits, resources),
        )
        self._plugins = Plugins(self._runner)
        for name in config.plugins:
            self._plugins.apply(name)
        self._requests: dict[str, PoolingRequest] = {}
        self._handles: dict[int, RunnerHandle] = {}

    def _sum(
        self, place: Place, limits: RunnerLimits, resources: Resources
    ) -> ProcessAllReduce | None:
        """This rank's end of its stage's sums; None with one tensor rank."""
        if place.tensor_ranks == 1:
            return None
        # Sums get a group of their own, so that no send of a link comes between them. Every rank
        # has to take part in making every group.
        groups = {
            stage: torch.distributed.new_group([*peers])
            for stage in range(place.num_stages)
            for peers in [replace(place, rank=stage * place.tensor_ranks).peers]
        }
        stage = resources.stage(place)
        return ProcessAllReduce(
            self._device,
            place.rank,
            limits.max_tokens,
            stage.config.hidden_size,
            next(stage.blocks[0].products()),
            group=groups[place.stage],
            size=place.tensor_ranks,
        )

    def serve(self) -> None:
        """Until `close` or the driver is gone."""
        while True:
            message, _ = wire.receive(self._connection)
            verb = message["verb"]
            if verb == "close":
                self._device.close()
                torch.distributed.destroy_process_group()
                return
            getattr(self, f"_on_{verb}")(message)

    def _on_begin(self, message: dict[str, Any]) -> None:
        self._device.begin_run()
        self._runner.begin_run(taps=message["taps"])
        self._requests, self._handles = {}, {}

    def _on_submit(self, message: dict[str, Any]) -> None:
        for data in message["requests"]:
            request = wire.request_from_json(data)
            self._requests[request.request_id] = request
        step = wire.step_from_json(message["step"])
        self._handles[step.plan.index] = self._runner.submit(step, self._requests)

    def _on_resolve(self, message: dict[str, Any]) -> None:
        handle = self._handles.pop(message["index"])
        if not self._runner.answers:
            handle.wait()
            return
        results = handle.result()
        outputs = [result for result in results if isinstance(result, PoolingOutput)]
        failures = [result for result in results if isinstance(result, PoolingFailure)]
        wire.send(
            self._connection,
            {
                "outputs": [output.request_id for output in outputs],
                "failures": {failure.request_id: failure.reason for failure in failures},
            },
            {str(i): output.values.contiguous() for i, output in enumerate(outputs)},
        )

    def _on_abort(self, message: dict[str, Any]) -> None:
        self._runner.abort(message["request_id"])

    def _on_plugin(self, message: dict[str, Any]) -> None:
        if message["apply"]:
            self._plugins.apply(message["name"])
        else:
            self._plugins.remove(message["name"])
        wire.send(self._connection, {"done": True})

    def _on_end(self, message: dict[str, Any]) -> None:
        del message
        self._device.drain()
        taps = self._runner.taps.taken()
        wire.send(
            self._connection,
            {
                "witness": asdict(self._runner.witness()),
                "chunks": dict(self._runner.account.chunks),
                "padded_tokens": list(self._runner.account.padded_tokens),
                "flags": self._runner.flags(),
                "taps": [[t.request_id, t.layer, t.step, t.start] for t in taps],
            },
            {str(i): tap.rows.contiguous() for i, tap in enumerate(taps)},
        )
        self._runner.taps.begin(enabled=False)


def new_store() -> str:
    """Path of a fresh rendezvous file (one per executor; never a port that may be taken)."""
    return str(tempfile.mkdtemp(prefix="parity-store-")) + "/store"

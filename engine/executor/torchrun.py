"""Ranks that torchrun started, on one machine or several. Rank 0 drives and computes as well.

The other ranks learn configuration and limits from rank 0, over a connection each; they find it
through the rendezvous that torchrun prepared.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict
from multiprocessing import Pipe
from multiprocessing.connection import Client, Connection, Listener
from threading import Thread
from typing import Any

import torch

from engine.config import EngineConfig, config_from_json, config_to_json
from engine.errors import ConfigurationError, EngineError
from engine.executor import wire, worker
from engine.executor.remote import RemoteExecutor
from engine.memory import RunnerLimits

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
ADDRESS = "parity/driver"
"""Key of the rendezvous store under which rank 0 says where it listens."""


class TorchrunExecutor(RemoteExecutor):
    """The driver, in rank 0's process. Owns: that rank's thread, the other ranks' connections."""

    def __init__(self, config: EngineConfig, limits: RunnerLimits) -> None:
        """Take in all other ranks, which are in `serve_rank`."""
        super().__init__(config)
        store, rank, size = join()
        if rank != 0 or size != config.parallel.num_ranks:
            raise ConfigurationError(
                f"executor='torchrun' in rank {rank} of {size}: expected to be driven by rank 0 of "
                f"{config.parallel.num_ranks}, which is pipeline_parallel_size x "
                "tensor_parallel_size. Start as many processes, and let the others call "
                "engine.executor.torchrun.serve_rank"
            )
        ours, theirs = Pipe()
        self._pipes = [ours, *_accept(store, size)]
        for pipe in self._pipes[1:]:
            wire.send(pipe, {"config": config_to_json(config), "limits": asdict(limits)})
        self._thread = Thread(
            target=worker.serve, args=(theirs, config, limits, 0, store), daemon=True
        )
        self._thread.start()
        try:
            self._await_ready()
        except EngineError:
            self.close()
            raise

    def close(self) -> None:
        for pipe in self._pipes:
            with suppress(OSError):  # that rank is gone already
                wire.send(pipe, {"verb": "close"})
        if self._pipes:
            self._thread.join(timeout=5)
        for pipe in self._pipes:
            pipe.close()
        self._pipes = []

    def _name_of(self, rank: int) -> str:
        return f"rank {rank} (started by torchrun)"

    def _end_of(self, rank: int) -> str:
        del rank
        return "closed its connection; torchrun's own output says how it ended"


def join() -> tuple[Any, int, int]:
    """The rendezvous that torchrun prepared: store, rank, number of ranks.

    Raises:
        ConfigurationError: torchrun did not start this process.
    """
    missing = [name for name in VARIABLES if name not in os.environ]
    if missing:
        raise ConfigurationError(
            f"executor='torchrun' needs the environment variables {missing}, which are not set. "
            "Start with: torchrun --nproc-per-node N -m engine.torchrun CONFIG.json "
            "REQUESTS.jsonl OUTPUT"
        )
    store, rank, size = next(torch.distributed.rendezvous("env://"))  # type: ignore[attr-defined]
    return torch.distributed.PrefixStore("parity", store), rank, size  # type: ignore[attr-defined]


def serve_rank() -> None:
    """Be a rank other than 0 until the driver closes."""
    store, rank, _ = join()
    host, port, key = json.loads(store.get(ADDRESS))
    with Client((host, port), authkey=bytes.fromhex(key)) as connection:
        wire.send(connection, {"rank": rank})
        message, _ = wire.receive(connection)
        config, limits = config_from_json(message["config"]), RunnerLimits(**message["limits"])
        worker.serve(connection, config, limits, rank, store)


def _accept(store: Any, size: int) -> list[Connection]:
    """The other ranks' connections, in order of rank."""
    key = secrets.token_bytes(32)
    by_rank: dict[int, Connection] = {}
    with Listener((_own_address(), 0), backlog=size, authkey=key) as listener:
        store.set(ADDRESS, json.dumps([*listener.address, key.hex()]))
        while len(by_rank) < size - 1:
            connection = listener.accept()
            message, _ = wire.receive(connection)
            by_rank[message["rank"]] = connection
    return [by_rank[rank] for rank in sorted(by_rank)]


def _own_address() -> str:
    """This machine as the other ranks reach it: what MASTER_ADDR, rank 0's machine, resolves to."""
    return socket.gethostbyname(os.environ["MASTER_ADDR"])

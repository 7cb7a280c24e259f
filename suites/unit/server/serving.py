"""A server in this process, without a socket: an application, its batcher, and how to ask it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
from starlette.applications import Starlette

from engine.config import EngineConfig, ExecutionConfig, SchedulerConfig
from engine.engine import Engine
from engine.resources import Resources
from engine.server.app import create_app
from engine.server.batcher import Batcher
from engine.server.config import ServerConfig
from engine.server.metrics import Metrics
from harness.checkpoints.catalogue import path_of

NAME = "served"
MAX_LEN = 160


def base_config(**changes: Any) -> EngineConfig:
    """The engine behind most tests; made when asked, since its checkpoint may have to be."""
    config = EngineConfig(
        model=path_of("tiny-qwen3"),
        max_model_len=MAX_LEN,
        scheduler=SchedulerConfig(max_num_batched_tokens=64, max_num_seqs=4),
        execution=ExecutionConfig(batch_invariant=True),
    )
    return replace(config, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Asked one request at a time by `ask`."""

    app: Starlette
    batcher: Batcher

    def ask(self, path: str, body: object, method: str = "POST") -> httpx.Response:
        """The answer to one request. A text is sent as it is, anything else as JSON."""
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        return asyncio.run(self.request(method, path, content))

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self.request("GET", path, ""))

    async def request(self, method: str, path: str, content: str | bytes) -> httpx.Response:
        """As `ask`, in a loop of the caller's."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.request(
                method, path, content=content, headers={"Content-Type": "application/json"}
            )


@contextmanager
def serving(
    config: EngineConfig | None = None, resources: Resources | None = None, **changes: Any
) -> Iterator[Server]:
    """A started server; `changes` are fields of its ServerConfig."""
    engine = base_config() if config is None else config
    server = replace(ServerConfig(model_name=NAME), **changes)
    metrics = Metrics()
    batcher = Batcher(lambda: Engine(engine, resources=resources), server.queue, metrics)
    app = create_app(server, batcher, metrics)
    batcher.start()
    try:
        yield Server(app=app, batcher=batcher)
    finally:
        batcher.stop(timeout_s=60)

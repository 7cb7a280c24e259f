"""A whole server process: engine, socket, signals, exit code."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from engine.config import EngineConfig
from engine.engine import Engine
from engine.server.app import create_app
from engine.server.batcher import Batcher
from engine.server.config import ServerConfig
from engine.server.metrics import Metrics

FAILED = 1
"""Exit code when the engine failed for good: a supervisor is to start the server again."""


class _Server(uvicorn.Server):
    """Refuses new requests from the first signal on, while uvicorn waits for those that run."""

    def __init__(
        self, config: uvicorn.Config, batcher: Batcher, greet: Callable[[int], None]
    ) -> None:
        super().__init__(config)
        self._batcher, self._greet = batcher, greet

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            self._greet(sockets[0].getsockname()[1])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._batcher.refuse_new()
        super().handle_exit(sig, frame)


def serve(engine: EngineConfig, config: ServerConfig, say: Callable[[str], None]) -> int:
    """Serve until SIGINT or SIGTERM (0) or until the engine has failed twice (FAILED).

    `say` is told the address once connections are accepted. Raises EngineError when the engine
    cannot start and OSError when the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        # First, because it is quick: nobody waits for weights to be told that the port is taken.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host, config.port))
        metrics, servers = Metrics(), list[uvicorn.Server]()

        def end() -> None:
            for server in servers:
                server.should_exit = True

        batcher = Batcher(lambda: Engine(engine), config.queue, metrics, on_death=end)
        try:
            app = create_app(config, batcher, metrics)
            server = _Server(_uvicorn_config(app, config), batcher, _greeting(config, batcher, say))
            servers.append(server)
            # uvicorn raises a signal again once it has shut down; it was obeyed by then.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            server.run(sockets=[listener])
        finally:
            batcher.stop(config.shutdown_timeout_s)
        return FAILED if batcher.dead else 0


def _uvicorn_config(app: Starlette, config: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=config.shutdown_timeout_s,
    )


def _greeting(
    config: ServerConfig, batcher: Batcher, say: Callable[[str], None]
) -> Callable[[int], None]:
    """What to do with the port once connections are accepted there."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    tasks = ", ".join(task.value for task in batcher.engine.supported_tasks)
    return lambda port: say(f"serving {config.model_name} on http://{host}:{port} (tasks: {tasks})")

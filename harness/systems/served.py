"""Our engine behind its own server, in this process and without a socket: one case, one server.

A case goes through the HTTP interface whole: body, validation, tokenizer, batcher, answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib.util import find_spec

import httpx
import numpy as np

from engine.config import EngineConfig
from engine.engine import Engine
from engine.plan import plan_to_json
from engine.request import PoolingOutput, PoolingResult
from engine.resources import Resources
from engine.session import Session
from harness.axes import Plan
from harness.axes.memory import small_pool
from harness.case import Case
from harness.judge.output import Output
from harness.systems.base import Assignment, Encoded, SystemFailed, SystemRun
from harness.systems.connection import Address
from harness.systems.http import HttpServer
from harness.systems.wire import dialect

PACKAGES = ("prometheus_client", "starlette")
NAME = "served"
STOPPING_S = 60.0


def missing() -> str:
    """Why there is no server to be had; empty when there is one."""
    lacking = [name for name in PACKAGES if find_spec(name) is None]
    if not lacking:
        return ""
    return f"the server needs {', '.join(lacking)}: pip install 'pooling-parity[server]'"


class WatchedSession(Session):
    """Owns: the dtypes that its answers had before they became JSON, which carries none."""

    dtypes: frozenset[str] = frozenset()

    def advance(self) -> Sequence[PoolingResult]:
        results = super().advance()
        answers = (r for r in results if isinstance(r, PoolingOutput))
        self.dtypes |= {str(r.values.dtype).removeprefix("torch.") for r in answers}
        return results


class WatchedEngine(Engine):
    """Owns: the sessions that a server opened on it, so that their plan and witness can be read."""

    def __init__(self, config: EngineConfig, *, resources: Resources | None) -> None:
        super().__init__(config, resources=resources)
        self.sessions: list[WatchedSession] = []

    def session(self) -> Session:
        self._executor.begin_run(taps=False)
        session = WatchedSession(self._loop(None), self._executor, self._witness)
        self.sessions.append(session)
        return session


class ServedSession:
    """Starts a server for each run, asks it over HTTP, and stops it."""

    def __init__(
        self,
        config: EngineConfig,
        resources: Resources | None,
        assignment: Assignment,
        *,
        small_pool: bool = False,
    ) -> None:
        self._config, self._resources, self._assignment = config, resources, assignment
        self._small_pool = small_pool

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        """Raises SystemFailed for an answer that is none, and where the server failed."""
        del plan, taps  # a server schedules for itself, and answers with what was asked for
        # The server's packages are an extra that an offline run does without.
        from engine.server.app import create_app  # noqa: PLC0415
        from engine.server.batcher import Batcher  # noqa: PLC0415
        from engine.server.config import ServerConfig  # noqa: PLC0415
        from engine.server.metrics import Metrics  # noqa: PLC0415

        engines: list[WatchedEngine] = []
        asked = self._config
        if self._small_pool:
            lengths = [len(prompt.token_ids) for prompt in prompts]
            blocks = small_pool(lengths, asked.cache.block_size)
            asked = replace(asked, cache=replace(asked.cache, num_blocks=blocks))

        def build() -> WatchedEngine:
            engines.append(WatchedEngine(asked, resources=self._resources))
            return engines[-1]

        config, metrics = ServerConfig(model_name=NAME), Metrics()
        batcher = Batcher(build, config.queue, metrics)
        try:
            app = create_app(config, batcher, metrics)
            batcher.start()
            client = HttpServer(
                self._assignment,
                Address(url="http://in-process"),
                spoken=dialect("parity"),
                model=NAME,
                transport=_InProcess(httpx.ASGITransport(app, raise_app_exceptions=False)),
            )
            outputs = tuple(client.answer(case, prompts, cell={}, account=None))
        finally:
            batcher.stop(STOPPING_S)
        sessions = [session for engine in engines for session in engine.sessions]
        session = sessions[-1] if len(sessions) == 1 else None
        if session is None or session.witness is None:
            raise SystemFailed(
                f"the server ran the case in {len(sessions)} sessions of {len(engines)} engines, "
                f"expected one of each that ended: {batcher.trouble}"
            )
        return SystemRun(
            outputs=tuple(as_computed(output, session.dtypes) for output in outputs),
            plan=plan_to_json(session.plan),
            witness=session.witness.to_json(),
        )


def as_computed(output: Output, dtypes: Collection[str]) -> Output:
    """A float32 answer as the dtype that it was computed in, if there is one and it lost nothing.

    Numbers that the dtype does not hold were changed on their way: they stay float32, and a
    comparison sees that.
    """
    (dtype,) = dtypes if len(dtypes) == 1 else (output.dtype,)
    if output.dtype != "float32" or dtype not in ("bfloat16", "float16"):
        return output
    if dtype == "bfloat16":  # the upper half of a float32
        upper = (output.bits >> np.uint32(16)).astype(np.uint16)
        narrow = Output.of(upper, "bfloat16")
    else:
        narrow = Output.of(output.data.astype(np.float16))
    return narrow if np.array_equal(narrow.float64, output.float64) else output


class _InProcess(httpx.BaseTransport):
    """An ASGI application as the transport of a client that blocks."""

    def __init__(self, transport: httpx.ASGITransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._transport.handle_async_request(request)
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=await answer.aread()
        )

"""Connections that are refused, abandoned or shut down, at a moment that the test chooses.

Passes wrongly if the prompts of a client that hangs up were through before it does. Ruled out by
suites/meta/test_suites_can_fail.py: `who-hung-up-is-served-on`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from engine.config import CacheConfig
from engine.resources import Resources
from engine.server.config import QueueLimits
from suites.unit.server.gates import BREAK, HOLD, break_next_step, held
from suites.unit.server.serving import Server, base_config, serving

PATH = "/v1/embeddings"
PATIENCE_S = 60


@pytest.fixture
def gated(resources: Resources) -> Iterator[Server]:
    config = base_config(plugins=(BREAK, HOLD))
    with serving(config, resources, queue=QueueLimits(max_prompts=3, max_tokens=99)) as server:
        yield server


async def until(happened: Callable[[], bool]) -> None:
    """Liveness only: nothing is measured against the patience."""
    async with asyncio.timeout(PATIENCE_S):
        while not happened():
            await asyncio.sleep(0.01)


async def call(
    server: Server, body: object, leave: asyncio.Event | None = None
) -> list[dict[str, Any]]:
    """One request as a server hands it on; `leave` is when the client hangs up. All that is sent.

    httpx's transport cannot hang up, so this speaks ASGI.
    """
    incoming = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await (leave or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    app: Callable[..., Awaitable[None]] = server.app
    await app(scope, receive, send)
    return sent


def status(sent: list[dict[str, Any]]) -> int:
    return int(sent[0]["status"])


def error(sent: list[dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = json.loads(sent[1]["body"])["error"]
    return found


def test_who_hangs_up_is_aborted_and_nobody_else(gated: Server) -> None:
    async def scene() -> None:
        leave = asyncio.Event()
        with held() as wait_until_held:
            kept = asyncio.create_task(call(gated, {"input": [5, 6, 7]}))
            await asyncio.to_thread(wait_until_held)
            left = asyncio.create_task(call(gated, {"input": [[5] * 40, [6] * 40]}, leave))
            await until(lambda: len(gated.batcher._open) == 3)
            leave.set()
            assert status(await left) == 499
            assert len(gated.batcher._open) == 1
        assert status(await kept) == 200

    asyncio.run(scene())
    metrics = gated.get("/metrics").text
    assert 'parity_prompts_total{outcome="aborted"} 2.0' in metrics
    assert 'parity_prompts_total{outcome="answered"} 1.0' in metrics


def test_company_of_a_refused_prompt_is_not_run_for_nobody(resources: Resources) -> None:
    config = base_config(plugins=(HOLD,), cache=CacheConfig(num_blocks=2))
    with serving(config, resources) as server:
        with held():
            refused = asyncio.run(call(server, {"input": [[5] * 5, [6] * 40]}))
            assert status(refused) == 400
            assert "num_blocks=2" in error(refused)["message"]
            assert not server.batcher._open
        assert server.ask(PATH, {"input": [5] * 5}).status_code == 200
        metrics = server.get("/metrics").text
    assert 'parity_prompts_total{outcome="refused"} 1.0' in metrics
    assert 'parity_prompts_total{outcome="aborted"} 1.0' in metrics


def test_too_much_is_429_and_says_when_to_come_again(gated: Server) -> None:
    async def scene() -> None:
        with held() as wait_until_held:
            kept = asyncio.create_task(call(gated, {"input": [[1], [2]]}))
            await asyncio.to_thread(wait_until_held)
            refused = await call(gated, {"input": [[1], [2]]})
            assert status(refused) == 429
            assert error(refused)["type"] == "rate_limit_error"
            assert int(dict(refused[0]["headers"])[b"retry-after"]) >= 1
        assert status(await kept) == 200
        assert status(await call(gated, {"input": [[1], [2]]})) == 200

    asyncio.run(scene())


def test_a_failed_engine_is_503_to_whom_it_ran_and_answers_the_next(gated: Server) -> None:
    async def scene() -> None:
        with held() as wait_until_held:
            lost = asyncio.create_task(call(gated, {"input": [1]}))
            await asyncio.to_thread(wait_until_held)
            kept = asyncio.create_task(call(gated, {"input": [2]}))
            await until(lambda: len(gated.batcher._open) == 2)
            break_next_step()
        assert status(await lost) == 503
        assert error(await lost)["code"] == "unavailable"
        assert status(await kept) == 200

    asyncio.run(scene())
    assert gated.get("/health").status_code == 200
    break_next_step()
    assert gated.ask(PATH, {"input": [1]}).status_code == 503
    gated.batcher._thread.join(PATIENCE_S)
    assert gated.get("/health").status_code == 503
    assert gated.ask(PATH, {"input": [1]}).status_code == 503


def test_a_server_that_ends_finishes_and_refuses(gated: Server) -> None:
    async def scene() -> None:
        with held() as wait_until_held:
            running = asyncio.create_task(call(gated, {"input": [1]}))
            await asyncio.to_thread(wait_until_held)
            gated.batcher.refuse_new()
            late = await call(gated, {"input": [2]})
            assert status(late) == 503
            assert error(late)["message"] == "the server is shutting down"
        assert status(await running) == 200

    asyncio.run(scene())
    assert gated.get("/health").status_code == 503

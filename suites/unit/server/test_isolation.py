"""One client's failure is its own: who shared the step with it gets the bits it gets alone.

Passes wrongly if the engine went down with the failed request and the company was answered by the
next one. Ruled out by suites/meta/test_suites_can_fail.py: `one-head-takes-the-engine-down`.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass

import pytest
import torch

from engine.engine import Engine
from engine.request import PoolingRequest, Task
from engine.resources import Resources
from suites.invariance.blighted import BLIGHT, BLIGHTED
from suites.unit.server.gates import FAILING_HEAD, FAILS, HOLD, held
from suites.unit.server.serving import Server, base_config, serving
from suites.unit.server.test_connections import PATH, until

FIRST, LEFT, SICK, RIGHT = ([5 + i] * (3 + i) for i in range(4))
"""Prompts; the first keeps the engine busy while the others come, so that these share a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What is wrong with one request, and what its client is told."""

    plugin: str
    body: dict[str, object]
    code: str
    told: str


TROUBLES = (
    Trouble(
        plugin=FAILING_HEAD,
        body={"input": SICK, "dimensions": FAILS},
        code="request_failed",
        told="the model's head failed on this request: ValueError: this head is planted",
    ),
    Trouble(
        plugin=BLIGHTED,
        body={"input": [*SICK[:-1], BLIGHT]},
        code="non_finite_output",
        told="the model's output for input is not finite",
    ),
)


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.code)
def test_company_of_a_request_that_goes_wrong(offline: Engine, trouble: Trouble) -> None:
    # Weights of its own: one of the troubles is in them.
    config = base_config(plugins=(HOLD, trouble.plugin))
    with serving(config, Resources(config)) as server:
        answers = asyncio.run(together(server, [{"input": LEFT}, trouble.body, {"input": RIGHT}]))
        metrics = server.get("/metrics").text
        after = server.ask(PATH, {"input": LEFT}).json()
    left, sick, right = (json.loads(text) for text in answers)
    assert sick["error"]["type"] == "server_error"
    assert sick["error"]["code"] == trouble.code
    assert sick["error"]["message"].startswith(trouble.told)
    for got, prompt in ((left, LEFT), (right, RIGHT), (after, LEFT)):
        assert torch.equal(row(got), alone(offline, prompt))
    assert "parity_engine_rebuilds_total 0.0" in metrics
    steps = re.search(r"^parity_step_tokens_count (\S+)", metrics, re.MULTILINE)
    assert steps is not None
    assert float(steps[1]) == 2, "the first prompt's step, and one that the others share"


async def together(server: Server, bodies: list[dict[str, object]]) -> list[str]:
    """The answers to bodies that are all waiting when the engine's next step is made."""
    with held() as wait_until_held:
        first = asyncio.create_task(post(server, {"input": FIRST}))
        await asyncio.to_thread(wait_until_held)
        asked = [asyncio.create_task(post(server, body)) for body in bodies]
        await until(lambda: len(server.batcher._open) == 1 + len(bodies))
    await first
    return [await each for each in asked]


async def post(server: Server, body: dict[str, object]) -> str:
    return (await server.request("POST", PATH, json.dumps(body))).text


def row(answer: dict[str, list[dict[str, list[float]]]]) -> torch.Tensor:
    return torch.tensor(answer["data"][0]["embedding"])


def alone(engine: Engine, prompt: list[int]) -> torch.Tensor:
    request = PoolingRequest(request_id="one", token_ids=tuple(prompt), task=Task.EMBED)
    return engine.run([request]).outputs["one"].values

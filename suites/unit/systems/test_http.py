"""Answers of a server are taken apart and distrusted; waits are as long as it wants them.

Passes wrongly if every answer came in the order of its prompts, so that indexes did not matter.
Ruled out by suites/meta/test_suites_can_fail.py: `rows-are-taken-as-they-come`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from harness.axes import baseline
from harness.case import Case, Prompt
from harness.systems import wire
from harness.systems.base import Refused, SystemFailed, SystemUnavailable
from harness.systems.connection import Address
from harness.systems.http import HttpServer, http
from suites.unit.systems.assignments import assignment

URL = "http://server.test"
EMBED = Case(task="embed", prompts=(Prompt(tokens=(5, 6)), Prompt(tokens=(7, 8, 9))))
PAIRS = Case(
    task="score",
    prompts=tuple(Prompt(query="q", document=text) for text in ("one", "two", "three")),
)
Reply = Callable[[httpx.Request], httpx.Response]


def ask(
    reply: Reply | Any,
    case: Case = EMBED,
    *,
    dialect: str = "parity",
    waits: list[float] | None = None,
    **address: Any,
) -> list[np.ndarray]:
    """The outputs of one case; `reply` answers, or is the JSON that is always answered."""
    if not callable(reply):
        content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    else:
        transport = httpx.MockTransport(reply)
    server = HttpServer(
        assignment(),
        Address(url=URL, **address),
        spoken=wire.dialect(dialect),
        model="served",
        transport=transport,
        sleep=[].append if waits is None else waits.append,
    )
    try:
        run = server.open(baseline(), {}).run(case, server.encode(case))
    finally:
        server.close()
    return [output.data for output in run.outputs]


def data(*rows: Any, indexes: tuple[int, ...] | None = None) -> dict[str, Any]:
    order = range(len(rows)) if indexes is None else indexes
    return {
        "data": [{"index": i, "embedding": row} for i, row in zip(order, rows, strict=True)],
        "usage": {"prompt_tokens": 5},
    }


def test_rows_come_in_the_order_of_their_indexes() -> None:
    first, second = ask(data([3.0], [1.5], indexes=(1, 0)))
    assert (first.tolist(), second.tolist()) == ([1.5], [3.0])
    assert first.dtype == np.float32


def test_a_float32_survives_the_wire() -> None:
    values = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    first, _ = ask(data(values.tolist(), [1.0]))
    assert first.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (b"<html>", "not JSON"),
        ([], "expected a JSON object, got list"),
        ({"error": "x"}, "no list 'data'"),
        (data([1.0]), "data has 1 items for 2 prompts"),
        (data([1.0], [2.0], indexes=(0, 0)), r"data\[1\]\.index is 0 for the second time"),
        (data([1.0], [2.0], indexes=(0, 2)), r"data\[1\]\.index is 2, expected 0 to 1"),
        ({"data": [{"index": 0}, {"index": 1}]}, r"data\[0\] has no 'embedding'"),
        (data([1.0], [None]), r"data\[index 1\]\.embedding\[0\] is null"),
        (b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}', "is nan"),
        (data([1.0], [True]), "is bool, expected a number"),
        (data([1.0], ["1"]), "is str, expected a number"),
        (data([1.0], []), "is empty"),
        (data([1.0], [[1.0], [1.0, 2.0]]), "is ragged"),
        (
            data([1.0], [2.0]) | {"usage": {"prompt_tokens": 4}},
            "server counted 4 tokens, the checkpoint's tokenizer 5",
        ),
    ],
)
def test_what_is_no_answer_is_named(reply: Any, told: str) -> None:
    with pytest.raises(SystemFailed, match=told):
        ask(reply)


def test_pairs_are_asked_by_query_in_both_interfaces() -> None:
    asked = []

    def reply(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        asked.append((request.url.path, body))
        items = [{"index": i, "score": i / 4} for i in (2, 0, 1)]
        if request.url.path == "/rerank":
            return httpx.Response(
                200,
                json={
                    "results": [{"index": i["index"], "relevance_score": i["score"]} for i in items]
                },
            )
        return httpx.Response(200, json={"data": items})

    for dialect in ("vllm", "cohere"):
        assert [row.tolist() for row in ask(reply, PAIRS, dialect=dialect)] == [
            [0.0],
            [0.25],
            [0.5],
        ]
    assert [path for path, _ in asked] == ["/score", "/rerank"]
    assert asked[0][1]["text_2"] == asked[1][1]["documents"] == ["one", "two", "three"]


def test_patience_is_as_long_as_the_server_says() -> None:
    answers = [
        httpx.Response(429, headers={"Retry-After": "7"}, json={"error": {"message": "slow down"}}),
        httpx.Response(503),
        httpx.Response(200, json=data([1.0], [2.0])),
    ]
    waits: list[float] = []
    assert len(ask(lambda _: answers.pop(0), waits=waits)) == 2
    assert waits == [7.0, 2.0]


def test_patience_ends() -> None:
    busy = httpx.Response(429, json={"error": {"message": "slow down"}})
    with pytest.raises(SystemFailed, match=r"429 after 3 tries: slow down"):
        ask(lambda _: busy, tries=3)


def test_a_wait_of_an_hour_is_cut_short() -> None:
    answers = [
        httpx.Response(429, headers={"Retry-After": "3600"}),
        httpx.Response(200, json=data([1.0], [2.0])),
    ]
    waits: list[float] = []
    ask(lambda _: answers.pop(0), waits=waits, longest_wait_s=9.0)
    assert waits == [9.0]


def test_other_errors_are_told_at_once() -> None:
    refused = httpx.Response(400, json={"error": {"message": "too long"}})
    with pytest.raises(SystemFailed, match="400: too long"):
        ask(lambda _: refused)

    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("read", request=request)

    with pytest.raises(SystemFailed, match="no answer within 120 s"):
        ask(silent)


def test_the_key_is_sent_and_told_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret-1")
    seen = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(401, json={"error": "no"})

    with pytest.raises(SystemFailed) as failure:
        ask(reply, api_key_env="SOME_KEY")
    assert seen == ["Bearer secret-1"]
    assert "secret-1" not in str(failure.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "needs url"),
        ({"url": URL, "port": 1}, r"takes dialect, model, url.*got \['port', 'url'\]"),
        ({"url": "server"}, "expected http://HOST:PORT"),
        ({"url": URL, "dialect": "grpc"}, "valid: parity, vllm"),
        ({"url": URL, "tries": 0}, "tries >= 1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SystemUnavailable, match=told):
        http(assignment(options=options))


def test_a_parameter_the_dialect_lacks_is_refused() -> None:
    case = Case(task="embed", prompts=EMBED.prompts, normalize=False)
    with pytest.raises(SystemFailed, match="normalize=False cannot be asked for"):
        ask(data([1.0], [2.0]), case, dialect="openai")


def test_a_switch_of_the_server_is_refused() -> None:
    server = http(assignment(options={"url": URL}))
    with pytest.raises(Refused, match="runs as it was started"):
        server.open(baseline().with_value("pp", "2"), {})

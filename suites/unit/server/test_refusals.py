"""What is not understood, does not apply or is too much gets a 4xx that says what would do.

Passes wrongly if an answer that is not finite was stopped by the JSON writer alone, which base64
never meets. Ruled out by suites/meta/test_suites_can_fail.py: `nan-is-sent-as-base64`.
"""

from __future__ import annotations

import json

import pytest

from engine.resources import Resources
from engine.server.config import QueueLimits
from suites.unit.server.gates import SPOIL
from suites.unit.server.serving import MAX_LEN, Server, base_config, serving

EMBED, POOL, SCORE, RERANK = "/v1/embeddings", "/pooling", "/score", "/rerank"
LONG = [7] * (MAX_LEN + 1)
REFUSED = {
    "not JSON": (EMBED, '{"input": ', 400, "invalid_json", "the body is not JSON"),
    "no UTF-8": (EMBED, b'{"input": "\xff"}', 400, "invalid_json", "the body is not JSON"),
    "NaN": (EMBED, '{"input": NaN}', 400, "invalid_json", "NaN is no JSON value"),
    "deep": (EMBED, "[" * 100_000, 400, "invalid_json", "nested too deep"),
    "digits": (EMBED, '{"input": [' + "9" * 5000 + "]}", 400, "invalid_json", "not JSON"),
    "no object": (EMBED, [], 400, "invalid_type", "the body: expected an object"),
    "no input": (EMBED, {}, 400, "missing_parameter", "input is missing"),
    "empty": (EMBED, {"input": ""}, 400, "invalid_type", "input: expected a string that is not"),
    "nothing": (EMBED, {"input": [[]]}, 400, "invalid_type", "or a list of at least 1 items"),
    "unknown": (EMBED, {"input": "a", "users": 1}, 400, "unknown_parameter", "valid: model, input"),
    "foreign": (EMBED, {"input": "a", "activation": True}, 400, "unknown_parameter", "valid: mod"),
    "wide": (EMBED, {"input": "a", "dimensions": 999}, 400, "invalid_value", "from 1 to "),
    "encoding": (EMBED, {"input": "a", "encoding_format": "hex"}, 400, "invalid_value", "['float'"),
    "token": (EMBED, {"input": [5, 1024]}, 400, "invalid_value", "input[1]: expected an integer"),
    "long": (EMBED, {"input": ["a", "b " * 400]}, 400, "context_length_exceeded", "input[1] has"),
    "long ids": (EMBED, {"input": LONG}, 400, "context_length_exceeded", f"has {MAX_LEN + 1} tok"),
    "surrogate": (EMBED, '{"input": "\\ud800"}', 400, "invalid_value", "not valid Unicode"),
    "surrogate name": (EMBED, '{"input": "a", "\\ud800": 1}', 400, "unknown_parameter", "ud800"),
    "model": (EMBED, {"input": "a", "model": "b"}, 404, "model_not_found", "expected 'served'"),
    "task": (POOL, {"input": "a", "task": "sing"}, 400, "invalid_value", "one of ['embed', 'class"),
    "other task's": (
        POOL,
        {"input": "a", "task": "embed", "activation": False},
        400,
        "not_applicable",
        "activation=False does not apply to task='embed': expected only ['dimensions', 'normalize",
    ),
    "one side": (SCORE, {"queries": "a"}, 400, "missing_parameter", "got ['queries']"),
    "no side": (SCORE, {}, 400, "missing_parameter", "got neither"),
    "mixed sides": (SCORE, {"queries": "a", "text_2": "b"}, 400, "missing_parameter", "or text_1"),
    "2 for 3": (
        SCORE,
        {"queries": ["a", "b"], "documents": ["c", "d", "e"]},
        400,
        "invalid_length",
        "2 queries for 3 documents: expected one for all",
    ),
    "no documents": (RERANK, {"query": "a", "documents": []}, 400, "invalid_length", "documents:"),
    "top 0": (
        RERANK,
        {"query": "a", "documents": ["b"], "top_n": 0},
        400,
        "invalid_value",
        "top_n",
    ),
    "bare object": (RERANK, {"query": "a", "documents": [{}]}, 400, "missing_parameter", "text is"),
    "path": ("/v2/embed", {}, 404, "not_found", "expected one of /classify, /health"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_told(server: Server, name: str) -> None:
    path, body, status, code, told = REFUSED[name]
    response = server.ask(path, body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code), error
    assert told in error["message"]
    assert error["type"] == "invalid_request_error"
    assert error.keys() == {"message", "type", "param", "code"}


def test_a_mistake_names_its_parameter(server: Server) -> None:
    def param(body: object) -> str | None:
        return server.ask(EMBED, body).json()["error"]["param"]

    assert param({"input": ["a", 3]}) == "input[1]"
    assert param({"input": ["a", "b " * 400]}) == "input[1]"
    assert param({"input": "a", "dimensions": "b"}) == "dimensions"
    assert param({"input": "a", "what": 1}) == "what"
    assert param("{") is None


def test_other_methods_and_media_are_refused(server: Server) -> None:
    wrong = server.get(EMBED)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["error"]["message"] == "Method Not Allowed: expected method POST"


def test_large_bodies_and_batches_are_refused_before_they_run(resources: Resources) -> None:
    with serving(
        resources=resources,
        max_body_bytes=2000,
        max_inputs=4,
        queue=QueueLimits(max_prompts=3, max_tokens=20),
    ) as server:
        body = server.ask(EMBED, json.dumps({"input": "a" * 2000}))
        assert (body.status_code, body.json()["error"]["code"]) == (413, "body_too_large")
        many = server.ask(EMBED, {"input": ["a"] * 5})
        assert (many.status_code, many.json()["error"]["code"]) == (400, "invalid_length")
        for prompts in ([[1]] * 4, [[1] * 21]):
            batch = server.ask(EMBED, {"input": prompts})
            assert (batch.status_code, batch.json()["error"]["code"]) == (413, "too_large")
        assert server.ask(EMBED, {"input": [[1] * 20]}).status_code == 200


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_what_is_not_finite_is_an_error(resources: Resources, encoding: str) -> None:
    with serving(base_config(plugins=(SPOIL,)), resources) as server:
        bad = server.ask(EMBED, {"input": [[1, 2], [1, 2, 3]], "encoding_format": encoding})
        error = bad.json()["error"]
        assert (bad.status_code, error["code"]) == (500, "non_finite_output")
        assert (error["param"], error["type"]) == ("input[1]", "server_error")
        assert server.ask(EMBED, {"input": [1, 2]}).status_code == 200


def test_a_bug_is_an_error_without_our_insides(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(server.batcher, "submit", bug)
    response = server.ask(EMBED, {"input": "a"})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    assert "secret" not in response.text

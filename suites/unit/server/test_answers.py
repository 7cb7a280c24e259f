"""Every endpoint answers with the engine's own bits, in the shape that it documents.

Passes wrongly if numbers were compared after a rounding that server and engine share. Ruled out by
suites/meta/test_suites_can_fail.py: `embeddings-lose-bits-on-the-wire`.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from functools import cache
from itertools import chain

import pytest
import torch

from engine.engine import Engine
from engine.request import PoolingParams, PoolingRequest, Task
from engine.server.schema import Json
from engine.tokenization import TokenizedPrompt, Tokenizer
from suites.unit.server.serving import NAME, Server, base_config

TEXTS = ("hello world", "a second text, longer than the first", "x")


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer(base_config().model)


def run(
    engine: Engine, prompts: Sequence[TokenizedPrompt], task: Task, **params: object
) -> list[torch.Tensor]:
    requests = [
        PoolingRequest(
            request_id=str(i),
            token_ids=prompt.token_ids,
            type_ids=prompt.type_ids,
            task=task,
            params=PoolingParams(**params),
        )
        for i, prompt in enumerate(prompts)
    ]
    outputs = engine.run(requests).outputs
    return [outputs[str(i)].values for i in range(len(requests))]


def bits(values: Json) -> Json:
    """The float32 bits of nested lists of numbers."""
    if isinstance(values, list):
        return [bits(value) for value in values]
    return struct.pack("<f", values)


def exactly(values: torch.Tensor) -> Json:
    return bits(values.tolist())


def encode(texts: Sequence[str]) -> list[TokenizedPrompt]:
    return [tokenizer().encode(text) for text in texts]


def ok(server: Server, path: str, body: Json) -> Json:
    response = server.ask(path, body)
    assert response.status_code == 200, response.text
    return response.json()


def test_embeddings_are_the_engines_bits(server: Server, offline: Engine) -> None:
    expected = run(offline, encode(TEXTS), Task.EMBED)
    answer = ok(server, "/v1/embeddings", {"model": NAME, "input": list(TEXTS)})
    assert [item["index"] for item in answer["data"]] == [0, 1, 2]
    assert [bits(item["embedding"]) for item in answer["data"]] == [exactly(e) for e in expected]
    tokens = sum(len(prompt.token_ids) for prompt in encode(TEXTS))
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert (answer["object"], answer["model"]) == ("list", NAME)


def test_base64_is_the_same_bits(server: Server, offline: Engine) -> None:
    (expected,) = run(offline, encode(TEXTS[:1]), Task.EMBED)
    answer = ok(server, "/v1/embeddings", {"input": TEXTS[0], "encoding_format": "base64"})
    found = base64.b64decode(answer["data"][0]["embedding"])
    assert found == b"".join(chain(exactly(expected)))


def test_token_ids_mean_the_text_they_come_from(server: Server) -> None:
    ids = [list(prompt.token_ids) for prompt in encode(TEXTS)]
    by_text = ok(server, "/v1/embeddings", {"input": list(TEXTS)})
    by_ids = ok(server, "/v1/embeddings", {"input": ids})
    assert by_ids["data"] == by_text["data"]
    assert ok(server, "/v1/embeddings", {"input": ids[1]})["data"][0] == by_text["data"][1] | {
        "index": 0
    }


@pytest.mark.parametrize("params", [{"dimensions": 7}, {"normalize": False}])
def test_parameters_reach_the_engine(
    server: Server, offline: Engine, params: dict[str, object]
) -> None:
    (expected,) = run(offline, encode(TEXTS[:1]), Task.EMBED, **params)
    (plain,) = run(offline, encode(TEXTS[:1]), Task.EMBED)
    answer = ok(server, "/v1/embeddings", {"input": TEXTS[0], **params})
    assert bits(answer["data"][0]["embedding"]) == exactly(expected) != exactly(plain)


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_pooling_gives_a_row_a_token(server: Server, offline: Engine, encoding: str) -> None:
    expected = run(offline, encode(TEXTS), Task.TOKEN_EMBED)
    body = {"input": list(TEXTS), "task": "token_embed", "encoding_format": encoding}
    data = ok(server, "/pooling", body)["data"]
    assert [item["shape"] for item in data] == [list(e.shape) for e in expected]
    for item, values in zip(data, expected, strict=True):
        if encoding == "float":
            assert bits(item["data"]) == exactly(values)
        else:
            assert base64.b64decode(item["data"]) == b"".join(chain(*exactly(values)))


def test_classify_gives_probabilities_or_logits(server: Server, offline: Engine) -> None:
    (probability,) = run(offline, encode(TEXTS[:1]), Task.CLASSIFY)
    (logit,) = run(offline, encode(TEXTS[:1]), Task.CLASSIFY, activation=False)
    (item,) = ok(server, "/classify", {"input": TEXTS[0]})["data"]
    assert bits(item.pop("probs")) == exactly(probability)
    assert item == {"index": 0, "label": None, "num_classes": 1}
    (item,) = ok(server, "/classify", {"input": TEXTS[0], "activation": False})["data"]
    assert bits(item["logits"]) == exactly(logit)
    assert "probs" not in item


@pytest.mark.parametrize("path", ["/score", "/v1/score"])
@pytest.mark.parametrize(
    ("body", "pairs"),
    [
        ({"queries": "q", "documents": "d"}, [("q", "d")]),
        ({"text_1": "q", "text_2": ["d", "e", "f"]}, [("q", "d"), ("q", "e"), ("q", "f")]),
        ({"queries": ["q", "r"], "documents": ["d", "e"]}, [("q", "d"), ("r", "e")]),
    ],
)
def test_scores_are_the_cross_encoders(
    server: Server, offline: Engine, path: str, body: Json, pairs: list[tuple[str, str]]
) -> None:
    prompts = [tokenizer().encode_rerank(*pair) for pair in pairs]
    expected = [value for values in run(offline, prompts, Task.CLASSIFY) for value in values]
    data = ok(server, path, body)["data"]
    assert [item["index"] for item in data] == list(range(len(pairs)))
    assert [bits(item["score"]) for item in data] == [exactly(value) for value in expected]


def test_an_instruction_changes_the_prompt(server: Server, offline: Engine) -> None:
    prompt = tokenizer().encode_rerank("q", "d", "Find the opposite")
    (expected,) = run(offline, [prompt], Task.CLASSIFY)
    body = {"queries": "q", "documents": "d", "instruction": "Find the opposite"}
    (item,) = ok(server, "/score", body)["data"]
    assert [bits(item["score"])] == exactly(expected)


DOCUMENTS = ["one", "two words", "now three words", "two words", "four"]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank"])
def test_rerank_sorts_and_keeps_the_index(server: Server, path: str) -> None:
    scores = [
        item["score"]
        for item in ok(server, "/score", {"queries": "q", "documents": DOCUMENTS})["data"]
    ]
    results = ok(server, path, {"query": "q", "documents": DOCUMENTS})["results"]
    assert [r["relevance_score"] for r in results] == sorted(scores, reverse=True)
    assert [scores[r["index"]] for r in results] == [r["relevance_score"] for r in results]
    order = [r["index"] for r in results]
    assert sorted(order) == [0, 1, 2, 3, 4] != order
    assert order.index(1) < order.index(3), "equal scores keep the order given"
    assert "document" not in results[0]


def test_rerank_cuts_after_it_sorts(server: Server) -> None:
    whole = ok(server, "/rerank", {"query": "q", "documents": DOCUMENTS})["results"]
    body = {"query": "q", "documents": [{"text": d} for d in DOCUMENTS], "top_n": 2}
    cut = ok(server, "/rerank", body | {"return_documents": True})["results"]
    assert [(r["index"], r["relevance_score"]) for r in cut] == [
        (r["index"], r["relevance_score"]) for r in whole[:2]
    ]
    assert [r["document"]["text"] for r in cut] == [DOCUMENTS[r["index"]] for r in whole[:2]]
    assert len(ok(server, "/rerank", body | {"top_n": 99})["results"]) == len(DOCUMENTS)


def test_the_model_is_described(server: Server) -> None:
    (card,) = server.get("/v1/models").json()["data"]
    assert card["id"] == NAME
    assert card["scored_by"] == "cross-encoder"
    assert card["tasks"] == ["embed", "classify", "token_embed", "token_classify"]
    assert server.get("/health").json() == {"status": "ok"}


def test_metrics_count(server: Server) -> None:
    def count(name: str) -> float:
        lines = server.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(name)).rpartition(" ")[2])

    answered, path = 'parity_prompts_total{outcome="answered"}', "/v1/embeddings"
    requests = f'parity_http_requests_total{{path="{path}",status="200"}}'
    ok(server, path, {"input": "x"})
    before = count(answered), count(requests), count("parity_prompt_tokens_total")
    ok(server, path, {"input": [[1, 2], [3, 4, 5]]})
    after = count(answered), count(requests), count("parity_prompt_tokens_total")
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 1, 5]
    assert count("parity_open_prompts") == count("parity_open_tokens") == 0
    assert count("parity_hazards_total") == 0
    assert count("parity_step_tokens_count") > 0

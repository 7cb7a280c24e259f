"""A model without a classifier scores by the cosine of embeddings, and refuses what it lacks.

Passes wrongly if all queries of a request were one text, so that it did not matter which a document
meets. Ruled out by suites/meta/test_suites_can_fail.py: `every-document-meets-the-first-query`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.config import EngineConfig, ExecutionConfig
from engine.engine import Engine
from engine.request import PoolingRequest, Task
from engine.tokenization import Tokenizer
from harness.checkpoints.catalogue import path_of
from suites.unit.server.serving import Server, serving

DOCUMENTS = ["one", "two words", "now three words"]


def config() -> EngineConfig:
    execution = ExecutionConfig(batch_invariant=True)
    return EngineConfig(model=path_of("tiny-bert"), max_model_len=64, execution=execution)


@pytest.fixture(scope="module")
def encoder() -> Iterator[Server]:
    with serving(config()) as server:
        yield server


def test_scores_are_cosines_of_embeddings(encoder: Server) -> None:
    tokenizer = Tokenizer(config().model)
    requests = [
        PoolingRequest(request_id=text, token_ids=tokenizer.encode(text).token_ids, task=Task.EMBED)
        for text in ["query", *DOCUMENTS]
    ]
    with Engine(config()) as engine:
        outputs = engine.run(requests).outputs
    query, *documents = (outputs[r.request_id].values.double() for r in requests)
    expected = [float(torch.dot(query, d) / (query.norm() * d.norm())) for d in documents]
    answer = encoder.ask("/score", {"queries": "query", "documents": DOCUMENTS}).json()
    assert [item["score"] for item in answer["data"]] == expected
    assert answer["usage"]["prompt_tokens"] == sum(r.num_tokens for r in requests)
    results = encoder.ask("/rerank", {"query": "query", "documents": DOCUMENTS}).json()["results"]
    order = sorted(range(3), key=expected.__getitem__, reverse=True)
    assert [r["index"] for r in results] == order
    assert len(set(expected)) == 3


def test_pairs_go_together(encoder: Server) -> None:
    def scores(**body: object) -> list[float]:
        return [item["score"] for item in encoder.ask("/score", body).json()["data"]]

    a, b = DOCUMENTS[:2]
    together = scores(queries=[a, b], documents=[b, b])
    assert together == scores(queries=a, documents=b) + scores(queries=b, documents=b)
    assert together[0] < together[1]


def test_it_says_what_it_is_and_refuses_what_it_is_not(encoder: Server) -> None:
    (card,) = encoder.get("/v1/models").json()["data"]
    assert card["scored_by"] == "bi-encoder"
    refused = encoder.ask("/classify", {"input": "a"})
    assert refused.status_code == 400
    assert "task='classify' is not supported" in refused.json()["error"]["message"]
    for name in ("activation", "instruction"):
        answer = encoder.ask("/score", {"queries": "a", "documents": "b", name: True})
        assert answer.json()["error"]["code"] == "unknown_parameter"
    paths = encoder.get("/openapi.json").json()["paths"]
    assert "/classify" not in paths
    assert {"/score", "/v1/score", "/rerank", "/v1/rerank", "/pooling"} < paths.keys()

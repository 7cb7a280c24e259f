"""Late interaction, listwise and sparse models over HTTP: the engine's own numbers, in order.

Passes wrongly if a score did not depend on which of its two sides is the query. Ruled out by
suites/meta/test_suites_can_fail.py: `documents-look-for-the-query`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.engine import Engine
from engine.pooling.late_interaction import maxsim
from engine.request import PoolingRequest, Task
from engine.tokenization import Tokenizer
from suites.unit.pooling.variants import config_of, copied, hugging_face, write_pooler
from suites.unit.server.serving import Server, serving

QUERY, DOCUMENTS = "what is it", ["one answer", "another, longer answer to it", "no"]
TEMPLATE = "{% for text in documents %}{{ text }}<|im_end|>{% endfor %}{{ query }}<|endoftext|>"


def alone(folder: Path, prompts: list[tuple[int, ...]], task: Task) -> list[torch.Tensor]:
    with Engine(config_of(folder)) as engine:
        requests = [
            PoolingRequest(request_id=str(i), token_ids=ids, task=task)
            for i, ids in enumerate(prompts)
        ]
        outputs = engine.run(requests).outputs
    return [outputs[str(i)].values for i in range(len(prompts))]


def scores(server: Server, **body: Any) -> list[float]:
    answer = server.ask("/score", {"queries": QUERY, "documents": DOCUMENTS, **body})
    assert answer.status_code == 200, answer.text
    return [item["score"] for item in answer.json()["data"]]


def in_order(server: Server, expected: list[float]) -> None:
    answer = server.ask("/rerank", {"query": QUERY, "documents": DOCUMENTS}).json()["results"]
    order = sorted(range(len(expected)), key=lambda i: -expected[i])
    assert [item["index"] for item in answer] == order
    assert len(set(expected)) == len(expected)


def near(found: list[float], expected: list[float]) -> bool:
    """One step or several make other batches, hence other roundings."""
    return found == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied("tiny-bert", tmp_path_factory.mktemp("colbert") / "model", keep_modules=False)
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (folder / "config.json").write_text(json.dumps(config))
    weight = torch.randn(24, 64, generator=torch.Generator().manual_seed(3))
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"linear.weight": weight}, folder / "model.safetensors")
    return folder


def test_late_interaction_scores_are_maxsim(colbert: Path) -> None:
    tokenizer = Tokenizer(colbert)
    prompts = [tokenizer.encode(text).token_ids for text in (QUERY, *DOCUMENTS)]
    query, *documents = alone(colbert, prompts, Task.TOKEN_EMBED)
    expected = [float(maxsim(query, document)) for document in documents]
    with serving(config_of(colbert)) as server:
        assert near(scores(server), expected)
        in_order(server, expected)
        assert not near(scores(server, dimensions=4), expected)
        (card,) = server.get("/v1/models").json()["data"]
        assert card["scored_by"] == "late-interaction"
        assert "/v1/embeddings" not in server.get("/openapi.json").json()["paths"]


@pytest.fixture(scope="module")
def listwise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied("tiny-qwen3", tmp_path_factory.mktemp("listwise") / "model")
    tokenizer = Tokenizer(folder)
    (document,) = tokenizer.encode_rendered("<|im_end|>").token_ids
    (query,) = tokenizer.encode_rendered("<|endoftext|>").token_ids
    markers = {"document_token_id": document, "query_token_id": query, "similarity": "cosine"}
    write_pooler(folder, listwise=markers)
    (folder / "listwise.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture
def listing(listwise: Path) -> Iterator[Server]:
    with serving(config_of(listwise)) as server:
        yield server


def test_listwise_scores_come_from_one_prompt(listwise: Path, listing: Server) -> None:
    text = "".join(f"{d}<|im_end|>" for d in DOCUMENTS) + f"{QUERY}<|endoftext|>"
    ids = Tokenizer(listwise).encode_rendered(text).token_ids
    (found,) = alone(listwise, [ids], Task.TOKEN_CLASSIFY)
    expected = found.flatten().tolist()
    assert near(scores(listing), expected)
    in_order(listing, expected)
    usage = listing.ask("/rerank", {"query": QUERY, "documents": DOCUMENTS}).json()["usage"]
    assert usage["prompt_tokens"] == len(ids)


def test_a_document_that_spells_a_marker_is_refused(listing: Server) -> None:
    answer = listing.ask("/rerank", {"query": QUERY, "documents": ["a <|im_end|> b", "c"]})
    assert answer.status_code == 400
    assert "holds 4 markers for 2 documents" in answer.json()["error"]["message"]


def test_sparse_embeddings_go_by_index(tmp_path: Path) -> None:
    hugging_face("tiny-bert", "BertForMaskedLM", tmp_path)
    (tmp_path / "1_SpladePooling").mkdir()
    (tmp_path / "1_SpladePooling" / "config.json").write_text('{"pooling_strategy": "max"}')
    kinds = [("", "MLMTransformer"), ("1_SpladePooling", "SpladePooling")]
    listed = [{"path": p, "type": f"sentence_transformers.sparse_encoder.{k}"} for p, k in kinds]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    tokenizer = Tokenizer(tmp_path)
    prompts = [tokenizer.encode(text).token_ids for text in (QUERY, *DOCUMENTS)]
    query, *documents = alone(tmp_path, prompts, Task.EMBED)
    with serving(config_of(tmp_path)) as server:
        body = {"input": QUERY, "encoding_format": "sparse"}
        (item,) = server.ask("/v1/embeddings", body).json()["data"]
        whole = torch.zeros_like(query)
        whole[item["embedding"]["indices"]] = torch.tensor(item["embedding"]["values"])
        assert near(whole.tolist(), query.tolist())
        assert 0 < len(item["embedding"]["indices"]) < query.numel()
        assert near(scores(server), [float(torch.dot(query, d)) for d in documents])
        refused = server.ask("/v1/embeddings", {"input": "a", "normalize": True})
        assert "normalize=True does not apply" in refused.json()["error"]["message"]

"""Process reward, ColBERT, SPLADE, BGE-M3 and the listwise reranker, against plain float64.

Passes wrongly if the drawn tokens were so alike that largest and mean are one. Ruled out by
suites/meta/test_suites_can_fail.py: `maxsim-takes-the-mean`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.engine import Engine
from engine.errors import CheckpointError, RequestError
from engine.pooling.late_interaction import maxsim
from engine.pooling.sparse import SparseVector, lexical_weights
from engine.request import PoolingParams, PoolingRequest, Task
from harness.checkpoints.catalogue import path_of
from harness.oracle.oracle import Oracle
from suites.figures import show
from suites.unit.models.packed import prompt
from suites.unit.pooling.variants import (
    config_of,
    copied,
    hugging_face,
    linear,
    relative_l2,
    run,
    write_pooler,
)

BOUND = 1e-5
"""As in `test_hf_heads`."""
TAG, GOOD, BAD, DOCUMENT, QUERY = 7, 21, 22, 8, 9


def asked(task: Task, ids: list[int], **params: Any) -> PoolingRequest:
    return PoolingRequest(
        request_id="a", token_ids=tuple(ids), task=task, params=PoolingParams(**params)
    )


def answer(
    folder: Path, task: Task, ids: list[int], *, chunk: int | None = None, **params: Any
) -> torch.Tensor:
    return run(config_of(folder, chunk=chunk), [asked(task, ids, **params)]).outputs["a"].values


def told(what: str, *errors: float) -> None:
    show(f"{what} off float64", ("relative L2",), [(error,) for error in errors])
    assert all(error <= BOUND for error in errors), errors
    assert max(errors) > 0


def marked(length: int, *places: int, token: int = TAG) -> list[int]:
    """A prompt with `token` at these places and nowhere else."""
    ids = [10 + i % 200 for i in prompt(length)]
    for place in places:
        ids[place] = token
    return ids


def head_rows(folder: Path, *ids: int) -> torch.Tensor:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return model.get_output_embeddings().weight[list(ids)].detach().double()


@pytest.fixture(scope="module")
def qwen3() -> Oracle:
    return Oracle(path_of("tiny-qwen3"))


@pytest.fixture(scope="module")
def bert() -> Oracle:
    return Oracle(path_of("tiny-bert"))


@pytest.mark.parametrize("chunk", [None, 16, 1])
def test_process_reward_judges_at_step_tags(
    tmp_path: Path, qwen3: Oracle, chunk: int | None
) -> None:
    """Tags in the first and last place, at both sides of a chunk's edge, and in a chunk alone."""
    folder = copied("tiny-qwen3", tmp_path / "model")
    write_pooler(folder, step_tag_id=TAG, returned_token_ids=[GOOD, BAD])
    places = (0, 15, 16, 17, 40, 59)
    ids = marked(60, *places)
    rows = qwen3.hidden(ids)[list(places)]
    logits = rows @ head_rows(folder, GOOD, BAD).T
    logits_error = relative_l2(
        answer(folder, Task.TOKEN_CLASSIFY, ids, chunk=chunk, activation=False), logits
    )
    scores = answer(folder, Task.TOKEN_CLASSIFY, ids, chunk=chunk)
    told(f"step tags, chunk {chunk}", logits_error, relative_l2(scores, logits.softmax(-1)))
    assert scores.shape == (6, 2)


def test_a_prompt_without_a_tag_is_refused(tmp_path: Path) -> None:
    folder = copied("tiny-qwen3", tmp_path / "model")
    write_pooler(folder, step_tag_id=TAG, returned_token_ids=[GOOD, BAD])
    with Engine(config_of(folder)) as engine:
        with pytest.raises(RequestError, match=r"none of the tokens \[7\]"):
            engine.check(asked(Task.TOKEN_CLASSIFY, [1, 2, 3]))
        engine.check(asked(Task.TOKEN_EMBED, [1, 2, 3]))


def test_a_reward_model_with_two_layers(tmp_path: Path, qwen3: Oracle) -> None:
    """As Qwen2.5-Math-PRM: Linear, ReLU, Linear over hidden states, at step tags."""
    folder = copied("tiny-qwen3", tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["Qwen3ForProcessRewardModel"], "num_labels": 2}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "reranker.json").unlink()
    write_pooler(folder, step_tag_id=TAG)
    generator = torch.Generator().manual_seed(1)
    tensors = load_file(folder / "model.safetensors")
    shapes = {"score.0.weight": (32, 64), "score.0.bias": (32,), "score.2.weight": (2, 32)}
    head = {n: torch.randn(*s, generator=generator) / 6 for n, s in shapes.items()}
    head["score.2.bias"] = torch.randn(2, generator=generator)
    save_file(tensors | head, folder / "model.safetensors")
    ids = marked(40, 3, 16, 39)
    rows = qwen3.hidden(ids)[[3, 16, 39]]
    wide = {n: t.double() for n, t in head.items()}
    inner = (rows @ wide["score.0.weight"].T + wide["score.0.bias"]).relu()
    logits = inner @ wide["score.2.weight"].T + wide["score.2.bias"]
    found = answer(folder, Task.TOKEN_CLASSIFY, ids, chunk=16)
    told("two-layer process reward", relative_l2(found, logits.softmax(-1)))


def test_colbert_projects_and_normalises_every_token(tmp_path: Path, bert: Oracle) -> None:
    folder = copied("tiny-bert", tmp_path / "model", keep_modules=False)
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (folder / "config.json").write_text(json.dumps(config))
    weight = torch.randn(24, 64, generator=torch.Generator().manual_seed(3))
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"linear.weight": weight}, folder / "model.safetensors")

    def truth(ids: list[int], width: int = 24) -> torch.Tensor:
        rows = bert.hidden(ids) @ weight.double().T
        return torch.nn.functional.normalize(rows[:, :width], dim=-1)

    query, documents = prompt(9), [prompt(n) for n in (5, 30)]
    found = [answer(folder, Task.TOKEN_EMBED, ids) for ids in (query, *documents)]
    exact = [truth(ids) for ids in (query, *documents)]
    errors = [relative_l2(a, b) for a, b in zip(found, exact, strict=True)]
    cut = answer(folder, Task.TOKEN_EMBED, query, dimensions=8)
    told("ColBERT rows", *errors, relative_l2(cut, truth(query, 8)))
    scores = torch.stack([maxsim(found[0], d) for d in found[1:]])
    expected = torch.stack([(exact[0] @ d.T).max(1).values.sum() for d in exact[1:]])
    told("MaxSim", relative_l2(scores, expected))
    with Engine(config_of(folder)) as engine:
        assert engine.supported_tasks == (Task.TOKEN_EMBED,)


@given(n=st.integers(1, 6), m=st.integers(1, 6), seed=st.integers(0, 99))
def test_maxsim_is_its_definition(n: int, m: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    query, document = (torch.randn(k, 3, generator=generator).double() for k in (n, m))
    expected = sum(max(float(q @ d) for d in document) for q in query)
    assert abs(float(maxsim(query, document)) - expected) <= 1e-12
    shuffled = document[torch.randperm(m, generator=generator)]
    assert abs(float(maxsim(query, shuffled)) - expected) <= 1e-12


@pytest.mark.parametrize("twice", [False, True])
def test_splade_is_the_largest_word_weight(tmp_path: Path, *, twice: bool) -> None:
    model = hugging_face("tiny-bert", "BertForMaskedLM", tmp_path)
    (tmp_path / "1_SpladePooling").mkdir()
    activation = "log1p_relu" if twice else "relu"
    (tmp_path / "1_SpladePooling" / "config.json").write_text(
        json.dumps({"pooling_strategy": "max", "activation_function": activation})
    )
    models = "sparse_encoder.models"
    kinds = [("", f"{models}.MLMTransformer"), ("1_SpladePooling", f"{models}.SpladePooling")]
    (tmp_path / "modules.json").write_text(
        json.dumps([{"path": p, "type": f"sentence_transformers.{k}"} for p, k in kinds])
    )
    ids = prompt(300 if not twice else 30)
    with torch.no_grad():
        weights = model(torch.tensor([ids])).logits[0].relu().log1p()
    weights = weights.log1p() if twice else weights
    truth = weights.amax(0)
    config = config_of(tmp_path)
    found = run(replace(config, max_model_len=512), [asked(Task.EMBED, ids)]).outputs["a"].values
    told("SPLADE", relative_l2(found, truth))
    sparse = SparseVector.of(found)
    assert 0 < len(sparse.indices) < sparse.size == found.numel()
    assert torch.equal(sparse.dense(), found)
    with Engine(config) as engine:
        assert engine.supported_tasks == (Task.EMBED,)
        for name, value in (("normalize", True), ("dimensions", 4), ("activation", False)):
            with pytest.raises(RequestError, match=f"{name}={value} does not apply"):
                engine.check(asked(Task.EMBED, ids[:9], **{name: value}))


def test_bge_m3_gives_a_vector_and_a_weight_for_each_token(tmp_path: Path, bert: Oracle) -> None:
    folder = copied("tiny-bert", tmp_path / "model", keep_modules=False)
    sparse = linear(folder, "sparse_linear.safetensors", 1, 64)
    colbert = linear(folder, "colbert_linear.safetensors", 32, 64)
    ids = prompt(40)
    rows = bert.hidden(ids)
    dense = torch.nn.functional.normalize(rows[0], dim=-1)
    weights = sparse(rows).relu()
    vectors = torch.nn.functional.normalize(colbert(rows[1:]), dim=-1)
    joined = answer(folder, Task.EMBED_AND_TOKEN_CLASSIFY, ids, normalize=True)
    told(
        "BGE-M3 joined, dense, weights, vectors",
        relative_l2(joined, torch.cat([dense, weights.flatten()])),
        relative_l2(answer(folder, Task.EMBED, ids, normalize=True), dense),
        relative_l2(answer(folder, Task.TOKEN_CLASSIFY, ids), weights),
        relative_l2(answer(folder, Task.TOKEN_EMBED, ids), vectors),
    )
    assert 0 < (weights > 0).sum() < 40
    shorter = answer(folder, Task.EMBED_AND_TOKEN_CLASSIFY, ids, normalize=True, dimensions=8)
    assert shorter.shape == (8 + 40,)
    assert abs(shorter[:8].norm() - 1) < 1e-6
    with Engine(config_of(folder)) as engine, pytest.raises(RequestError, match="activation=False"):
        engine.check(asked(Task.TOKEN_CLASSIFY, ids, activation=False))


def test_a_pickled_head_is_refused_with_its_conversion(tmp_path: Path) -> None:
    folder = copied("tiny-bert", tmp_path / "model")
    (folder / "sparse_linear.pt").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"is a pickle.*Convert it once.*weights_only=True"):
        Engine(config_of(folder))


def test_lexical_weights_are_the_largest_of_each_token() -> None:
    weights = torch.tensor([[0.5], [0.2], [0.0], [0.9], [0.3]])
    assert lexical_weights([0, 5, 6, 5, 7], weights, unused=[0]) == pytest.approx({5: 0.9, 7: 0.3})


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("chunk", [None, 16])
def test_a_listwise_reranker_compares_marker_rows(
    tmp_path: Path, qwen3: Oracle, similarity: str, chunk: int | None
) -> None:
    folder = copied("tiny-qwen3", tmp_path / "model")
    markers = {"document_token_id": DOCUMENT, "query_token_id": QUERY, "similarity": similarity}
    write_pooler(folder, listwise=markers)
    places, last = (6, 15, 16, 33), 40
    ids = marked(50, *places, token=DOCUMENT)
    ids[last] = QUERY
    rows = qwen3.hidden(ids)[[*places, last]]
    if similarity == "cosine":
        rows = torch.nn.functional.normalize(rows, dim=-1)
    found = answer(folder, Task.TOKEN_CLASSIFY, ids, chunk=chunk)
    told(f"listwise, {similarity}, chunk {chunk}", relative_l2(found, rows[:-1] @ rows[-1:].T))
    assert found.shape == (4, 1)
    with Engine(config_of(folder)) as engine:
        for wrong in (ids[:40], ids[last:], [*ids, DOCUMENT], [*ids, QUERY]):
            with pytest.raises(RequestError, match="expected markers of documents and then one"):
                engine.check(asked(Task.TOKEN_CLASSIFY, wrong))

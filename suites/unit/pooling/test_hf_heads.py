"""Heads that Hugging Face defines, against its own model in float64.

Passes wrongly if the logits were so flat that any activation gives about the same. Ruled out by
suites/meta/test_suites_can_fail.py: `every-classifier-has-a-sigmoid`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.engine import Engine
from engine.errors import CheckpointError
from engine.request import PoolingParams, PoolingRequest, Task
from suites.figures import show
from suites.unit.models.packed import prompt
from suites.unit.pooling.variants import (
    config_of,
    hugging_face,
    relative_l2,
    run,
    write_pooler,
)

BOUND = 1e-5
"""Relative L2 off float64: float32's roundoff through four layers. Measured 2e-7 to 1.5e-6."""
LENGTHS = (3, 17, 60)
PROMPTS = [prompt(n) for n in LENGTHS]


def requests(task: Task, **params: Any) -> list[PoolingRequest]:
    return [
        PoolingRequest(
            request_id=str(n), token_ids=tuple(ids), task=task, params=PoolingParams(**params)
        )
        for n, ids in zip(LENGTHS, PROMPTS, strict=True)
    ]


def answers(folder: Path, task: Task, *, chunk: int | None = None, **params: Any) -> torch.Tensor:
    """All prompts' answers in one row after another."""
    outputs = run(config_of(folder, chunk=chunk), requests(task, **params)).outputs
    values = [outputs[str(n)].values for n in LENGTHS]
    return torch.cat([v if v.dim() > 1 else v.unsqueeze(0) for v in values])


def logits_of(model: Any) -> torch.Tensor:
    """Hugging Face's logits of every prompt, alone; [3, C] or all tokens' rows."""
    with torch.no_grad():
        found = [model(torch.tensor([ids])).logits[0] for ids in PROMPTS]
    return torch.cat([f if f.dim() > 1 else f.unsqueeze(0) for f in found])


Activation = Callable[[torch.Tensor], torch.Tensor]
SOFTMAX: Activation = partial(torch.softmax, dim=-1)
CASES: list[tuple[str, str, int, Activation]] = [
    ("tiny-bert", "BertForSequenceClassification", 3, SOFTMAX),
    ("tiny-bert", "BertForSequenceClassification", 1, torch.sigmoid),
    ("tiny-qwen3", "Qwen3ForSequenceClassification", 3, SOFTMAX),
    ("tiny-qwen3", "Qwen3ForSequenceClassification", 1, torch.sigmoid),
    ("tiny-llama", "LlamaForSequenceClassification", 2, SOFTMAX),
    ("tiny-bert", "BertForTokenClassification", 5, SOFTMAX),
    ("tiny-qwen3", "Qwen3ForTokenClassification", 4, SOFTMAX),
]


@pytest.mark.parametrize(
    ("name", "architecture", "labels", "activation"),
    CASES,
    ids=[f"{name}-{architecture}-{labels}" for name, architecture, labels, _ in CASES],
)
def test_classifiers_are_hugging_faces(
    tmp_path: Path, name: str, architecture: str, labels: int, activation: Activation
) -> None:
    truth = logits_of(hugging_face(name, architecture, tmp_path, num_labels=labels))
    task = Task.TOKEN_CLASSIFY if "Token" in architecture else Task.CLASSIFY
    chunk = None if name == "tiny-bert" else 16
    logits = answers(tmp_path, task, chunk=chunk, activation=False)
    scores = answers(tmp_path, task, chunk=chunk)
    errors = relative_l2(logits, truth), relative_l2(scores, activation(truth))
    show(
        f"{architecture}, {labels} labels, off float64",
        ("what", "relative L2"),
        [("logits", errors[0]), ("scores", errors[1])],
    )
    assert 0 < errors[0] <= BOUND
    assert errors[1] <= BOUND
    assert activation(truth).std(0).min() > 1e-2, "the head is blind"


def test_a_decoders_score_head_judges_every_token(tmp_path: Path) -> None:
    model = hugging_face("tiny-qwen3", "Qwen3ForSequenceClassification", tmp_path, num_labels=2)
    with torch.no_grad():
        rows = [model.model(torch.tensor([ids])).last_hidden_state[0] for ids in PROMPTS]
        truth = model.score(torch.cat(rows))
    found = answers(tmp_path, Task.TOKEN_CLASSIFY, activation=False, chunk=16)
    assert relative_l2(found, truth) <= BOUND


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ("regression", lambda x: x),
        ("multi_label_classification", torch.sigmoid),
        ("single_label_classification", SOFTMAX),
    ],
)
def test_problem_type_and_request_choose_the_activation(
    tmp_path: Path, problem: str, expected: Activation
) -> None:
    model = hugging_face(
        "tiny-bert", "BertForSequenceClassification", tmp_path, num_labels=3, problem_type=problem
    )
    truth = logits_of(model)
    assert relative_l2(answers(tmp_path, Task.CLASSIFY), expected(truth)) <= BOUND
    for name, function in (("sigmoid", torch.sigmoid), ("softmax", SOFTMAX)):
        found = answers(tmp_path, Task.CLASSIFY, activation=name)
        assert relative_l2(found, function(truth)) <= BOUND


@pytest.mark.parametrize(
    "affine", [{"logit_bias": 0.5, "logit_scale": 2.0}, {"logit_mean": 0.5, "logit_sigma": 0.5}]
)
def test_calibration_comes_before_the_activation(tmp_path: Path, affine: dict[str, float]) -> None:
    model = hugging_face("tiny-qwen3", "Qwen3ForSequenceClassification", tmp_path, num_labels=1)
    write_pooler(tmp_path, **affine)
    truth = (logits_of(model) - 0.5) * 2.0
    assert relative_l2(answers(tmp_path, Task.CLASSIFY), torch.sigmoid(truth)) <= BOUND
    assert relative_l2(answers(tmp_path, Task.CLASSIFY, activation=False), truth) <= BOUND


def test_a_scalar_reward_is_the_logit(tmp_path: Path) -> None:
    model = hugging_face("tiny-llama", "LlamaForSequenceClassification", tmp_path, num_labels=1)
    write_pooler(tmp_path, activation="identity")
    truth = logits_of(model)
    found = answers(tmp_path, Task.CLASSIFY, chunk=16)
    assert relative_l2(found, truth) <= BOUND
    assert found.abs().max() > 1, "no probability"


def test_a_cross_encoders_activation_is_read(tmp_path: Path) -> None:
    model = hugging_face("tiny-bert", "BertForSequenceClassification", tmp_path, num_labels=1)
    file = tmp_path / "config.json"
    name = {"activation_fn": "torch.nn.modules.linear.Identity"}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"sentence_transformers": name}))
    assert relative_l2(answers(tmp_path, Task.CLASSIFY), logits_of(model)) <= BOUND


def edited(folder: Path, **values: object) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    return folder


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    hugging_face("tiny-bert", "BertForSequenceClassification", tmp_path, num_labels=3)
    with pytest.raises(CheckpointError, match=r"2 labels in config.json, 3 classes in the weights"):
        Engine(config_of(edited(tmp_path, num_labels=2)))
    edited(tmp_path, num_labels=3)
    for content, message in (
        ({"logit_bias": 1.0, "logit_mean": 1.0}, "not both"),
        ({"logit_sigma": 0}, "logit_sigma=0"),
        ({"activation": "tanh"}, r"activation='tanh'.*identity"),
        ({"bias": 1}, r"keys \['bias'\]: expected some of"),
        ({"returned_token_ids": [1]}, "beside a step_tag_id"),
        ({"step_tag_id": 4}, "none that it acts on"),
    ):
        write_pooler(tmp_path, **content)
        with pytest.raises(CheckpointError, match=message):
            Engine(config_of(tmp_path))
    (tmp_path / "pooler.json").unlink()
    with pytest.raises(CheckpointError, match=r"expected tensor score.weight|unexpected tensors"):
        Engine(config_of(edited(tmp_path, architectures=["BertModel"])))

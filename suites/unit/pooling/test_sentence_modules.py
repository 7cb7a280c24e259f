"""Modules on disk, against sentence-transformers itself in float64.

Passes wrongly if the modules behind pooling changed nothing that the bound sees. Ruled out by
suites/meta/test_suites_can_fail.py: `dense-modules-without-activation`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sentence_transformers
import torch
from safetensors.torch import save_file

from engine.engine import Engine
from engine.errors import CheckpointError, RequestError
from engine.request import PoolingParams, PoolingRequest, Task
from engine.tokenization import Tokenizer
from harness.checkpoints.catalogue import path_of
from suites.figures import show
from suites.unit.pooling.variants import config_of, copied, relative_l2, run

BOUND = 1e-5
"""As in `test_hf_heads`."""
TEXTS = ("query: one", "query: a second text, which is longer than the first", "query: x")
COMBINATIONS: tuple[tuple[str, ...], ...] = (
    ("cls",),
    ("max",),
    ("mean",),
    ("mean_sqrt_len_tokens",),
    ("weightedmean",),
    ("lasttoken",),
    ("lasttoken", "cls", "weightedmean", "max", "mean", "mean_sqrt_len_tokens"),
)
FLAGS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


def write_modules(folder: Path, *kinds: tuple[str, str]) -> None:
    listing = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(listing))


def write_dense(folder: Path, inputs: int, outputs: int, activation: str, *, bias: bool) -> None:
    folder.mkdir(exist_ok=True)
    config = {"in_features": inputs, "out_features": outputs, "bias": bias}
    config["activation_function"] = f"torch.nn.modules.{activation}"
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(outputs)
    tensors = {"linear.weight": torch.randn(outputs, inputs, generator=generator) / inputs**0.5}
    if bias:
        tensors["linear.bias"] = torch.randn(outputs, generator=generator) / 4
    save_file(tensors, folder / "model.safetensors")


def write_pooling(folder: Path, **config: object) -> None:
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 64, **config})
    )


def theirs(folder: Path, **options: Any) -> torch.Tensor:
    """sentence-transformers' own embeddings of TEXTS, each alone, in float64."""
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu").double()
    rows = [model.encode(text, convert_to_tensor=True, **options) for text in TEXTS]
    return torch.stack(rows).double()


def ours(folder: Path, **params: Any) -> torch.Tensor:
    tokenizer = Tokenizer(folder)
    requests = [
        PoolingRequest(
            request_id=text,
            token_ids=tokenizer.encode(text).token_ids,
            task=Task.EMBED,
            params=PoolingParams(**params),
        )
        for text in TEXTS
    ]
    outputs = run(config_of(folder), requests).outputs
    return torch.stack([outputs[text].values for text in TEXTS])


@pytest.fixture(scope="module")
def chained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tiny-bert with two Dense modules; tests write its pooling anew."""
    return copied("tiny-bert", tmp_path_factory.mktemp("st") / "model")


@pytest.mark.parametrize("legacy", [False, True])
def test_pooling_modes_dense_and_normalise(chained: Path, *, legacy: bool) -> None:
    rows = []
    for modes in COMBINATIONS:
        if legacy:  # flags are joined in one order, whichever the file has
            write_pooling(chained, **{FLAGS[mode]: True for mode in modes})
        else:
            write_pooling(chained, pooling_mode=list(modes))
        width = 64 * len(modes)
        write_dense(chained / "2_Dense", width, 48, "activation.Tanh", bias=True)
        write_dense(chained / "3_Dense", 48, 24, "linear.Identity", bias=False)
        write_modules(
            chained,
            ("", "Transformer"),
            ("1_Pooling", "Pooling"),
            ("2_Dense", "Dense"),
            ("3_Dense", "Dense"),
            *([("4_Normalize", "Normalize")] if legacy else []),
        )
        truth = theirs(chained)
        found = ours(chained)
        assert found.shape == (3, 24)
        rows.append(("+".join(modes), relative_l2(found, truth)))
        cosine = torch.nn.functional.cosine_similarity(truth[:1], truth[1:])
        assert cosine.max() < 0.99, f"{modes} is blind"
    show("sentence-transformers modules off its float64", ("pooling", "relative L2"), rows)
    assert 0 < max(error for _, error in rows) <= BOUND


@pytest.mark.parametrize("modes", [("cls", "mean", "weightedmean", "max"), ("lasttoken",)])
def test_an_instruction_can_be_left_out(chained: Path, modes: tuple[str, ...]) -> None:
    """include_prompt: false."""
    write_pooling(chained, pooling_mode=list(modes), include_prompt=False)
    write_modules(chained, ("", "Transformer"), ("1_Pooling", "Pooling"))
    model = sentence_transformers.SentenceTransformer(str(chained), device="cpu").double()
    instruction, rest = "query: ", [text.removeprefix("query: ") for text in TEXTS]
    truth = torch.stack(
        [model.encode(text, prompt=instruction, convert_to_tensor=True).double() for text in rest]
    )
    # Without its closing [SEP]: how many tokens the instruction takes.
    skipped = len(Tokenizer(chained).encode(instruction).token_ids) - 1
    found = ours(chained, prompt_tokens=skipped)
    assert relative_l2(found, truth) <= BOUND
    if modes != ("lasttoken",):
        assert relative_l2(ours(chained), truth) > 1e-2


def test_prompt_tokens_apply_only_where_they_are_left_out(chained: Path) -> None:
    def refused(task: Task, count: int) -> str:
        request = PoolingRequest(
            request_id="a", token_ids=(5, 6), task=task, params=PoolingParams(prompt_tokens=count)
        )
        with Engine(config_of(chained)) as engine, pytest.raises(RequestError) as error:
            engine.check(request)
        return str(error.value)

    write_modules(chained, ("", "Transformer"), ("1_Pooling", "Pooling"))
    write_pooling(chained, pooling_mode="mean", include_prompt=False)
    assert "expected 0 to 1" in refused(Task.EMBED, 2)
    assert "prompt_tokens=1 does not apply to task='token_embed'" in refused(Task.TOKEN_EMBED, 1)
    write_pooling(chained, pooling_mode="mean")
    assert "prompt_tokens=1 does not apply to task='embed'" in refused(Task.EMBED, 1)


def test_dimensions_follow_the_projection(chained: Path) -> None:
    write_pooling(chained, pooling_mode="mean")
    write_dense(chained / "2_Dense", 64, 32, "activation.ReLU", bias=True)
    write_modules(
        chained,
        ("", "Transformer"),
        ("1_Pooling", "Pooling"),
        ("2_Dense", "Dense"),
        ("3_Normalize", "Normalize"),
    )
    truth = theirs(chained, truncate_dim=8, normalize_embeddings=True)
    assert relative_l2(ours(chained, dimensions=8), truth) <= BOUND
    request = PoolingRequest(
        request_id="a", token_ids=(5,), task=Task.EMBED, params=PoolingParams(dimensions=33)
    )
    with Engine(config_of(chained)) as engine, pytest.raises(RequestError, match="size 32"):
        engine.check(request)


def test_what_the_engine_has_not_got_is_refused_by_name(tmp_path: Path) -> None:
    folder = copied("tiny-bert", tmp_path / "model")

    def refusal() -> str:
        with pytest.raises(CheckpointError) as error:
            Engine(config_of(folder))
        return str(error.value)

    write_modules(folder, ("", "Transformer"), ("1_Pooling", "Pooling"), ("2_LSTM", "LSTM"))
    assert "module 'sentence_transformers.models.LSTM'" in refusal()
    write_modules(folder, ("1_Pooling", "Pooling"), ("", "Transformer"))
    assert "chains ['Pooling', 'Transformer']: expected Transformer" in refusal()
    write_modules(folder, ("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"))
    write_dense(folder / "2_Dense", 32, 8, "activation.Tanh", bias=True)
    assert "a Dense module of 32 inputs after 64 values" in refusal()
    write_dense(folder / "2_Dense", 64, 8, "activation.Mish", bias=True)
    assert "'torch.nn.modules.activation.Mish'" in refusal()
    write_dense(folder / "2_Dense", 64, 8, "activation.Tanh", bias=True)
    save_file({"linear.weight": torch.ones(8, 64)}, folder / "2_Dense" / "model.safetensors")
    assert "linear.bias" in refusal()
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    assert "Convert other formats to safetensors" in refusal()
    write_modules(folder, ("", "Transformer"), ("1_Pooling", "Pooling"))
    write_pooling(folder, pooling_mode="median")
    assert "asks for pooling ['median']" in refusal()


def test_generated_checkpoints_are_read_as_before() -> None:
    with Engine(config_of(path_of("tiny-bert"))) as engine:
        assert engine.rules.width(Task.EMBED) == 64

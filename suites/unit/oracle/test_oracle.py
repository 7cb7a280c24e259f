"""The oracle against an independent float64 implementation, and the questions it must refuse.

Passes wrongly if the bound let float32 pass for float64. Ruled out by
suites/meta/test_suites_can_fail.py: `the-oracle-answers-in-float32`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from torch import nn

from harness.checkpoints.catalogue import path_of
from harness.oracle import oracle as oracle_module
from harness.oracle import warmup
from harness.oracle.errors import ImpreciseModel, IncompleteWeights, InvalidPrompt
from harness.oracle.oracle import Oracle
from harness.oracle.precision import require_float64
from suites.unit.oracle import reference

# Two float64 implementations differ by their summation order: a few hundred roundings of 1.1e-16,
# carried through four layers. Measured: 0.7e-15 to 3.3e-15 over 1 to 300 tokens.
FLOAT64 = 1e-12


@lru_cache(maxsize=8)
def oracle(name: str, dtype: oracle_module.Dtype = "float64") -> Oracle:
    return Oracle(path_of(name), dtype=dtype)


def prompt(length: int, seed: int = 0) -> list[int]:
    generator = np.random.Generator(np.random.PCG64(seed))
    return [int(token) for token in generator.integers(10, 1000, size=length)]


def distance(a: torch.Tensor, b: torch.Tensor | np.ndarray) -> float:
    """Relative L2 distance of `a` from `b`."""
    other = torch.as_tensor(b)
    return float((a - other).norm() / other.norm())


@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-llama"])
@pytest.mark.parametrize("length", [1, 2, 61])
def test_decoder_agrees_with_an_independent_float64(name: str, length: int) -> None:
    ids = prompt(length)
    *streams, final = reference.decoder(path_of(name), ids)
    assert distance(oracle(name).hidden(ids), final) < FLOAT64
    layers = oracle(name).layer_hidden(ids)
    assert len(layers) == len(streams) == 4
    for layer, stream in zip(layers, streams, strict=True):
        assert distance(layer, stream) < FLOAT64


@pytest.mark.parametrize("length", [1, 2, 61])
def test_encoder_agrees_with_an_independent_float64(length: int) -> None:
    ids = prompt(length)
    types = [int(place >= length // 2) for place in range(length)]
    *streams, final = reference.bert(path_of("tiny-bert"), ids, types)
    assert distance(oracle("tiny-bert").hidden(ids, types), final) < FLOAT64
    for layer, stream in zip(oracle("tiny-bert").layer_hidden(ids, types), streams, strict=True):
        assert distance(layer, stream) < FLOAT64


@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-bert"])
def test_float32_twin_is_near_and_not_equal(name: str) -> None:
    ids = prompt(61)
    error = distance(oracle(name, "float32").hidden(ids), oracle(name).hidden(ids))
    # one float32 rounding is 6e-8; thousands of them, amplified by a tripled query, stay below 1e-4
    assert 1e-8 < error < 1e-4


def test_float32_norms_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_module, "replace_norms", lambda model: 0)
    with pytest.raises(ImpreciseModel, match="float32"):
        Oracle(path_of("tiny-qwen3"))


def test_float32_anywhere_is_detected_and_rotary_is_not() -> None:
    class RotaryEmbedding(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.float().cos().double()

    class Leak(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.max(x.float(), dim=-1)[0].double()

    one = torch.ones(2, dtype=torch.float64)
    rotary, leak = RotaryEmbedding(), Leak()
    require_float64(rotary, lambda: rotary(one))
    with pytest.raises(ImpreciseModel, match="max"):
        require_float64(leak, lambda: leak(one))


def test_pooling_and_normalisation() -> None:
    ids, states = prompt(9), oracle("tiny-qwen3").hidden(prompt(9))
    o = oracle("tiny-qwen3")
    assert torch.equal(o.embed(ids, "LAST", normalize=False), states[-1])
    assert torch.equal(o.embed(ids, "CLS", normalize=False), states[0])
    assert distance(o.embed(ids, "MEAN", normalize=False), states.sum(0) / 9) < FLOAT64
    unit = o.embed(ids, "LAST", normalize=True)
    assert distance(unit, states[-1] / states[-1].norm()) < FLOAT64
    rows = o.token_embed(ids, normalize=True)
    assert rows.shape == (9, 64)
    assert float((rows.norm(dim=-1) - 1).abs().max()) < FLOAT64


def test_results_are_owned_by_the_caller() -> None:
    ids = prompt(9)
    first = oracle("tiny-qwen3").hidden(ids)
    first.zero_()
    assert float(oracle("tiny-qwen3").hidden(ids).norm()) > 1


def test_yes_no_logit_reads_two_rows_of_the_tied_head() -> None:
    ids = prompt(20)
    weights, _config = reference.load(path_of("tiny-qwen3"))
    head, last = weights["model.embed_tokens.weight"], reference.decoder(path_of("tiny-qwen3"), ids)
    expected = float((head[258] - head[257]) @ last[-1][-1])
    assert abs(oracle("tiny-qwen3").yes_no_logit(ids, 258, 257) - expected) < FLOAT64 * 100
    assert abs(expected) > 0.1


def test_untied_head_is_read_from_the_checkpoint(tmp_path: Path) -> None:
    folder = _copy(tmp_path, untie=True)
    ids = prompt(20)
    # the copy's head is the negated embedding, so the answer is negated too
    tied, untied = oracle("tiny-qwen3"), Oracle(folder)
    assert untied.yes_no_logit(ids, 258, 257) == -tied.yes_no_logit(ids, 258, 257)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: oracle("tiny-qwen3").hidden([]), "expected 1 to 4096 tokens, got 0"),
        (lambda: oracle("tiny-bert").hidden([9] * 513), "expected 1 to 512 tokens, got 513"),
        (lambda: oracle("tiny-qwen3").hidden([1, 1024]), r"in \[0, 1024\), got 1 to 1024"),
        (lambda: oracle("tiny-qwen3").hidden([1], [0]), "qwen3 has no segments"),
        (lambda: oracle("tiny-bert").hidden([1, 2], [0]), "expected 2 type ids"),
        (lambda: oracle("tiny-bert").hidden([1, 2], [0, 2]), r"in \[0, 2\)"),
        (lambda: oracle("tiny-bert").embed([1], "MAX", normalize=True), "pooling='MAX'"),
    ],
)
def test_impossible_questions_are_refused(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidPrompt, match=message):
        ask()


def test_missing_weights_are_refused(tmp_path: Path) -> None:
    folder = _copy(tmp_path, drop="model.layers.2.mlp.up_proj.weight")
    with pytest.raises(IncompleteWeights, match=r"layers\.2\.mlp\.up_proj"):
        Oracle(folder)


def test_oracle_never_loads_the_engine() -> None:
    program = (
        "import sys, harness.oracle.cache\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] == 'engine'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "poolings"), [("tiny-qwen3", ("LAST", "MEAN")), ("tiny-bert", ("MEAN", "CLS"))]
)
def test_generated_models_tell_prompts_apart(
    name: str, poolings: tuple[oracle_module.Pooling, ...]
) -> None:
    texts = (
        "What is the capital of France?",
        "def total(values): return sum(values)",
        "It rained all morning and the bridge was closed.",
        "Сегодня хорошая погода",
    )
    for pooling in poolings:
        units = torch.stack(
            [oracle(name).embed(_tokenize(name, text), pooling, normalize=True) for text in texts]
        )
        cosines = (units @ units.T)[~torch.eye(len(texts), dtype=torch.bool)]
        assert float(cosines.max()) < 0.9


@pytest.mark.parametrize(("name", "pooling"), [("tiny-qwen3", "LAST"), ("tiny-bert", "CLS")])
def test_one_early_token_moves_the_output(
    name: str,
    pooling: oracle_module.Pooling,
    record_property: Callable[[str, object], None],
) -> None:
    ids = prompt(60)
    changed = [*ids[:2], (ids[2] + 37) % 900 + 20, *ids[3:]]
    assert ids != changed
    moved = distance(
        oracle(name).embed(changed, pooling, normalize=True),
        oracle(name).embed(ids, pooling, normalize=True),
    )
    record_property("relative_l2", moved)
    # a hundred times what a reordered sum may move (1e-5), else a bug could hide below tolerance
    assert moved > 1e-3


def _tokenize(name: str, text: str) -> list[int]:
    ids: list[int] = Tokenizer.from_file(str(path_of(name) / "tokenizer.json")).encode(text).ids
    return ids


def _copy(tmp_path: Path, *, drop: str = "", untie: bool = False) -> Path:
    """tiny-qwen3 without tensor `drop`, or with a head of its own (minus the embedding)."""
    folder = tmp_path / "tiny-qwen3"
    shutil.copytree(path_of("tiny-qwen3"), folder)
    (folder / "parity-manifest.json").unlink()
    weights = load_file(folder / "model.safetensors")
    weights.pop(drop, None)
    if untie:
        weights["lm_head.weight"] = -weights["model.embed_tokens.weight"]
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_vector_math_is_settled_before_the_model_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    load = oracle_module._load
    monkeypatch.setattr(oracle_module, "settle_vector_math", lambda: happened.append("settled"))
    monkeypatch.setattr(
        oracle_module, "_load", lambda path: (happened.append("loaded"), load(path))[1]
    )
    Oracle(path_of("tiny-bert"))
    assert happened == ["settled", "loaded"]


def test_settling_calls_each_function_in_both_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.dtype] = []
    monkeypatch.setattr(warmup, "_FUNCTIONS", (lambda one: seen.append(one.dtype),))
    warmup.settle_vector_math.__wrapped__()  # past the once-per-process cache
    assert seen == [torch.float32, torch.float64]

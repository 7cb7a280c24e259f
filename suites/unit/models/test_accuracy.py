"""Final hidden states against transformers, in float32 and float64, packed and chunked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from engine.models import load_model
from harness.checkpoints.catalogue import path_of
from suites.unit.models.packed import PackedRun, prompt

LENGTHS = (1, 2, 17, 100)
DECODERS = ("tiny-qwen3", "tiny-llama")
FLOAT64_BOUND = 1e-6
"""transformers' norms round to float32 (unit roundoff 6e-8) also in a float64 model."""


class Float64RMSNorm(torch.nn.Module):
    """The norm without the rounding to float32 that transformers hard-codes."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight, self.eps = norm.weight, norm.variance_epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()


@cache
def reference(name: str, dtype: torch.dtype, *, exact_norms: bool = False) -> Any:
    model = transformers.AutoModel.from_pretrained(path_of(name), dtype=dtype).eval()
    if exact_norms:
        for parent in list(model.modules()):
            for attribute, child in list(parent.named_children()):
                if type(child).__name__.endswith("RMSNorm"):
                    setattr(parent, attribute, Float64RMSNorm(child))
    return model


def reference_hidden(
    name: str,
    token_ids: list[int],
    dtype: torch.dtype,
    types: list[int] | None = None,
    *,
    exact_norms: bool = False,
) -> torch.Tensor:
    kinds = {} if types is None else {"token_type_ids": torch.tensor([types])}
    with torch.inference_mode():
        model = reference(name, dtype, exact_norms=exact_norms)
        hidden: torch.Tensor = model(torch.tensor([token_ids]), **kinds).last_hidden_state[0]
    return hidden


def error(values: torch.Tensor, truth: torch.Tensor) -> float:
    """Relative error in the Euclidean norm, taken in float64."""
    return float((values.double() - truth).norm() / truth.norm())


@pytest.mark.parametrize("chunk", [None, 1, 7, 64])
@pytest.mark.parametrize("name", DECODERS)
def test_float64_specification_is_the_reference_model(name: str, chunk: int | None) -> None:
    prompts = [prompt(n) for n in LENGTHS]
    model = load_model(path_of(name), dtype="float64", attention="naive")
    for ids, hidden in zip(
        prompts, PackedRun(model=model, prompts=prompts, chunk=chunk).hidden(), strict=True
    ):
        assert error(hidden, reference_hidden(name, ids, torch.float64)) <= FLOAT64_BOUND
        # Without transformers' float32 norms nothing is left but float64's own roundoff, 1e-16,
        # times the model's depth.
        truth = reference_hidden(name, ids, torch.float64, exact_norms=True)
        assert error(hidden, truth) <= 1e-13


@pytest.mark.parametrize("attention", ["sdpa", "naive"])
@pytest.mark.parametrize("chunk", [None, 7])
@pytest.mark.parametrize("name", DECODERS)
def test_float32_error_is_no_more_than_twice_the_references(
    name: str, chunk: int | None, attention: str
) -> None:
    prompts = [prompt(n) for n in LENGTHS]
    model = load_model(path_of(name), attention=attention)
    hidden = PackedRun(model=model, prompts=prompts, chunk=chunk, min_rows=2).hidden()
    truths = [reference_hidden(name, ids, torch.float64, exact_norms=True) for ids in prompts]
    theirs = [reference_hidden(name, ids, torch.float32) for ids in prompts]
    # Over all rows: on a single row the reference may be exact by luck.
    ours_error = error(torch.cat(hidden), torch.cat(truths))
    assert 0 < ours_error <= 2 * error(torch.cat(theirs), torch.cat(truths))


@pytest.mark.parametrize("family", ["Llama", "Qwen3"])
def test_projection_biases_and_an_untied_head_are_read(tmp_path: Path, family: str) -> None:
    """Released variants that the generated checkpoints do not cover."""
    sizes = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24}  # 96 is not 64
    config = getattr(transformers, f"{family}Config")(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, vocab_size=300,
        attention_bias=True, tie_word_embeddings=False, **sizes,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = getattr(transformers, f"{family}ForCausalLM")(config).double().eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith("bias"):  # which transformers initialises to zero
                parameter.normal_()
    theirs.save_pretrained(tmp_path)
    model = load_model(tmp_path, dtype="float64", attention="naive")
    ids = prompt(17)
    with torch.inference_mode():
        truth = theirs.model(torch.tensor([ids])).last_hidden_state[0]
    assert error(PackedRun(model=model, prompts=[ids]).hidden()[0], truth) <= FLOAT64_BOUND
    assert torch.equal(model.lm_head_rows([5, 299]), theirs.lm_head.weight[[5, 299]])


def test_backends_agree_on_grouped_queries_of_float64() -> None:
    prompts = [prompt(n) for n in LENGTHS]
    naive, sdpa = (
        PackedRun(
            model=load_model(path_of("tiny-qwen3"), dtype="float64", attention=attention),
            prompts=prompts,
            chunk=7,
        ).hidden()
        for attention in ("naive", "sdpa")
    )
    for a, b in zip(naive, sdpa, strict=True):
        assert error(a, b) <= 1e-13


@pytest.mark.parametrize("attention", ["sdpa", "naive"])
def test_encoder_matches_the_reference_with_segments(attention: str) -> None:
    name = "tiny-bert"
    prompts = [prompt(n) for n in LENGTHS]
    types = [[int(i >= len(ids) // 2) for i in range(len(ids))] for ids in prompts]
    truths, theirs = (
        [
            reference_hidden(name, ids, dtype, kinds)
            for ids, kinds in zip(prompts, types, strict=True)
        ]
        for dtype in (torch.float64, torch.float32)
    )
    double, single = (
        PackedRun(
            model=load_model(path_of(name), dtype=dtype, attention=attention),
            prompts=prompts,
            types=types,
        ).hidden()
        for dtype in ("float64", "float32")
    )
    for ours, truth in zip(double, truths, strict=True):
        assert error(ours, truth) <= 1e-13  # LayerNorm keeps float64 in transformers
    ours_error = error(torch.cat(single), torch.cat(truths))
    assert 0 < ours_error <= 2 * error(torch.cat(theirs), torch.cat(truths))


def test_segments_matter_to_the_encoder() -> None:
    model, ids = load_model(path_of("tiny-bert")), prompt(17)
    one, two = (
        PackedRun(model=model, prompts=[ids], types=[[kind] * 17]).hidden()[0] for kind in (0, 1)
    )
    assert error(one, two.double()) > 1e-2


@pytest.mark.parametrize("name", [*DECODERS, "tiny-bert"])
def test_company_changes_a_prompt_by_roundoff_only(name: str) -> None:
    model = load_model(path_of(name), dtype="float64")
    prompts = [prompt(n, seed=n) for n in (3, 40, 1, 9)]
    together = PackedRun(model=model, prompts=prompts).hidden()
    for ids, hidden in zip(prompts, together, strict=True):
        assert error(hidden, PackedRun(model=model, prompts=[ids]).hidden()[0]) <= 1e-13

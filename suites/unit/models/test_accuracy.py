"""Final hidden states against transformers, in float32 and float64, packed and chunked.

Passes wrongly if the bound in float64 were too wide to see a formula that is a little off. Ruled
out by suites/meta/test_suites_can_fail.py: `norms-without-their-epsilon`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from engine.models import load_model
from harness.checkpoints.catalogue import CHECKPOINTS, path_of
from harness.oracle.oracle import Dtype, Oracle
from suites.unit.models.packed import PackedRun, prompt

LENGTHS = (1, 2, 17, 100)
GENERATED = tuple(name for name, known in CHECKPOINTS.items() if known.origin == "generated")
DECODERS = tuple(name for name in GENERATED if CHECKPOINTS[name].kind == "decoder")
FLOAT64 = 1e-13
"""float64's own roundoff, 1e-16, times the depth of the models. Measured: up to 3.1e-15."""


@cache
def oracle(name: str, dtype: Dtype = "float64") -> Oracle:
    return Oracle(path_of(name), dtype=dtype)


def prompts_of(name: str) -> list[list[int]]:
    """Prompts of every length; no special tokens, which RoBERTa counts as no position."""
    return [[max(token, 10) for token in prompt(n)] for n in LENGTHS]


def kinds_of(name: str, prompts: list[list[int]]) -> list[list[int]] | None:
    """Two segments where the model has them."""
    if name != "tiny-bert":
        return None
    return [[int(i >= len(ids) // 2) for i in range(len(ids))] for ids in prompts]


def states(
    name: str, prompts: list[list[int]], kinds: list[list[int]] | None, dtype: Dtype = "float64"
) -> list[torch.Tensor]:
    return [
        oracle(name, dtype).hidden(ids, None if kinds is None else kinds[index])
        for index, ids in enumerate(prompts)
    ]


def error(values: torch.Tensor, truth: torch.Tensor) -> float:
    """Relative error in the Euclidean norm, taken in float64."""
    return float((values.double() - truth).norm() / truth.norm())


@pytest.mark.parametrize("chunk", [None, 1, 7, 64])
@pytest.mark.parametrize("name", GENERATED)
def test_float64_specification_is_the_reference_model(name: str, chunk: int | None) -> None:
    if chunk is not None and name not in DECODERS:
        return  # a row needs rows after it: refused at start-up
    prompts = prompts_of(name)
    kinds = kinds_of(name, prompts)
    model = load_model(path_of(name), dtype="float64", attention="naive")
    run = PackedRun(model=model, prompts=prompts, types=kinds, chunk=chunk)
    for hidden, truth in zip(run.hidden(), states(name, prompts, kinds), strict=True):
        assert error(hidden, truth) <= FLOAT64


@pytest.mark.parametrize("attention", ["sdpa", "naive"])
@pytest.mark.parametrize("chunk", [None, 7])
@pytest.mark.parametrize("name", GENERATED)
def test_float32_error_is_no_more_than_twice_the_references(
    name: str, chunk: int | None, attention: str
) -> None:
    if chunk is not None and name not in DECODERS:
        return
    prompts = prompts_of(name)
    kinds = kinds_of(name, prompts)
    model = load_model(path_of(name), attention=attention)
    run = PackedRun(model=model, prompts=prompts, types=kinds, chunk=chunk, min_rows=2)
    # Over all rows: on a single row the reference may be exact by luck.
    truth = torch.cat(states(name, prompts, kinds))
    theirs = torch.cat(states(name, prompts, kinds, "float32"))
    assert 0 < error(torch.cat(run.hidden()), truth) <= 2 * error(theirs, truth)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Llama", {"attention_bias": True, "tie_word_embeddings": False}),
        ("Qwen3", {"attention_bias": True, "tie_word_embeddings": False}),
        ("Qwen3", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
        ("Qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
        ("Mistral", {"sliding_window": None, "tie_word_embeddings": True}),
        ("Gemma3Text", {"sliding_window": 5}),  # causal
        ("Gemma3Text", {"sliding_window": 9, "use_bidirectional_attention": True}),
        ("Bert", {}),
        ("Roberta", {"pad_token_id": 1}),
        ("XLMRoberta", {"pad_token_id": 0}),
        ("ModernBert", {"local_attention": 7, "norm_bias": True, "mlp_bias": True}),
        ("ModernBert", {"local_attention": 8, "attention_bias": True}),
        ("DistilBert", {"sinusoidal_pos_embds": True, "activation": "relu"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value) or "plain",
)
def test_whole_models_are_read_as_transformers_saves_them(
    tmp_path: Path, family: str, options: dict[str, Any]
) -> None:
    """Released variants that the generated checkpoints do not cover, with the head they come with.

    transformers writes the configuration and the names, in the manner of its newest version.
    """
    sizes: dict[str, Any] = {"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 96}
    sizes |= {"num_attention_heads": 4, "vocab_size": 300, "pad_token_id": 0}
    whole = "Gemma3ForCausalLM" if family == "Gemma3Text" else f"{family}ForCausalLM"
    if "Bert" in family or "Roberta" in family or "BERT" in family:
        whole = f"{family}ForMaskedLM"
    else:
        sizes |= {"num_key_value_heads": 2, "head_dim": 24}  # 96 is not 64
    if family == "DistilBert":
        sizes = {"n_layers": 4, "dim": 64, "hidden_dim": 96, "n_heads": 4, "vocab_size": 300}
    torch.manual_seed(0)
    theirs = getattr(transformers, whole)(
        getattr(transformers, f"{family}Config")(**(sizes | options))
    )
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith("bias") or "norm" in name.lower():
                parameter.normal_(std=0.3)  # transformers initialises them to zero, or to one
            else:
                parameter.normal_(std=0.2)
    theirs.eval().save_pretrained(tmp_path)
    model = load_model(tmp_path, dtype="float64", attention="naive")
    ids = [max(token, 10) for token in prompt(33)]
    hidden = PackedRun(model=model, prompts=[ids]).hidden()[0]
    assert error(hidden, Oracle(tmp_path).hidden(ids)) <= FLOAT64
    if not options.get("tie_word_embeddings", True):
        head = theirs.lm_head.weight.detach()
        assert torch.equal(model.lm_head_rows([5, 299]), head[[5, 299]].double())


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


def test_segments_matter_to_the_encoder() -> None:
    model, ids = load_model(path_of("tiny-bert")), prompt(17)
    one, two = (
        PackedRun(model=model, prompts=[ids], types=[[kind] * 17]).hidden()[0] for kind in (0, 1)
    )
    assert error(one, two.double()) > 1e-2


@pytest.mark.parametrize("name", GENERATED)
def test_company_changes_a_prompt_by_roundoff_only(name: str) -> None:
    model = load_model(path_of(name), dtype="float64")
    prompts = [[max(t, 10) for t in prompt(n, seed=n)] for n in (3, 40, 1, 9)]
    together = PackedRun(model=model, prompts=prompts).hidden()
    for ids, hidden in zip(prompts, together, strict=True):
        assert error(hidden, PackedRun(model=model, prompts=[ids]).hidden()[0]) <= 1e-13

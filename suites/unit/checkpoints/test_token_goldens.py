"""Stored token ids still come out of each checkpoint's `tokenizer.json`, with no transformers.

Passes wrongly if the ids were the same whichever tokenizer read the texts. Ruled out by
suites/meta/test_suites_can_fail.py: `a-tokenizer-of-another-model`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from harness.checkpoints.cache import weights_sha256
from harness.checkpoints.catalogue import CHECKPOINTS, path_of
from harness.checkpoints.errors import CheckpointUnavailable
from harness.checkpoints.reranker import read_spec

GOLDENS = Path(__file__).parent / "goldens"
NAMES = ("minilm", "smollm2", "tiny-qwen3", "tiny-bert")


def tokenizer_of(name: str) -> Tokenizer:
    """The checkpoint's tokenizer, without the truncation and padding that its file may ask for."""
    try:
        folder = path_of(name, allow_fetch=True)
    except CheckpointUnavailable as error:
        pytest.skip(str(error))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def cases_of(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((GOLDENS / f"tokens-{name}.json").read_text())["cases"]
    return cases


@pytest.mark.parametrize("name", NAMES)
def test_token_ids_match(name: str) -> None:
    tokenizer = tokenizer_of(name)
    for case in cases_of(name):
        made = tokenizer.encode(
            case["text"], case["pair"], add_special_tokens=case["add_special_tokens"]
        )
        assert made.ids == case["token_ids"], (case["text"], case["pair"])


@pytest.mark.parametrize("name", ["minilm", "tiny-bert"])
def test_segments_match(name: str) -> None:
    tokenizer, pairs = tokenizer_of(name), [case for case in cases_of(name) if case["pair"]]
    assert pairs
    for case in pairs:
        made = tokenizer.encode(case["text"], case["pair"])
        assert made.type_ids == case["type_ids"]
        assert {0, 1} == set(made.type_ids)


@pytest.mark.parametrize("name", NAMES)
def test_goldens_cover_short_and_long(name: str) -> None:
    lengths = [len(case["token_ids"]) for case in cases_of(name)]
    assert min(lengths) == 0
    assert max(lengths) > 300


def test_minilm_file_would_cut_at_128_if_obeyed() -> None:
    """Its `tokenizer.json` truncates and pads to 128: whoever loads it must switch both off."""
    tokenizer_of("minilm")
    obeyed = Tokenizer.from_file(str(path_of("minilm") / "tokenizer.json"))
    assert len(obeyed.encode("hello " * 300).ids) == len(obeyed.encode("hello").ids) == 128


def test_smollm2_answers_are_the_catalogued_tokens() -> None:
    tokenizer, spec = tokenizer_of("smollm2"), CHECKPOINTS["smollm2"].reranker
    assert spec is not None
    assert read_spec(path_of("smollm2")) == spec
    assert tokenizer.encode(f"assistant\n{spec.yes_text}").ids[-1] == spec.yes
    assert tokenizer.encode(f"assistant\n{spec.no_text}").ids[-1] == spec.no
    assert tokenizer.encode("yes").ids == [10407]
    assert tokenizer.encode("no").ids == [4607]


def test_smollm2_dequantises_to_the_known_weights() -> None:
    """Another hash: a library now dequantises differently, and every stored figure is void."""
    tokenizer_of("smollm2")
    assert (
        weights_sha256(path_of("smollm2"))
        == "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd"
    )

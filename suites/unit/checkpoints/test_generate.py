"""Generated checkpoints are the same bytes everywhere and carry what their catalogue entry says.

Passes wrongly if all tensors held the same numbers, and the stored hashes had been made of those.
Ruled out by suites/meta/test_suites_can_fail.py: `every-tensor-has-the-same-numbers`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jinja2 import Environment
from tokenizers import Tokenizer

from harness.checkpoints.cache import CheckpointCache, manifest
from harness.checkpoints.catalogue import CHECKPOINTS, available, path_of
from harness.checkpoints.errors import UnknownCheckpoint
from harness.checkpoints.generate import GENERATORS
from harness.checkpoints.reranker import read_spec
from harness.checkpoints.tensors import normal

GOLDENS = Path(__file__).parent / "goldens"


@pytest.mark.parametrize("name", GENERATORS)
def test_bytes_match_the_committed_hashes(name: str, tmp_path: Path) -> None:
    cache = CheckpointCache(root=tmp_path)  # made anew here, never read from a user's cache
    golden = json.loads((GOLDENS / "generated-sha256.json").read_text())[name]
    assert manifest(path_of(name, cache=cache)) == golden


def test_normal_deviates_are_standard_and_keyed() -> None:
    values = normal("test", 40_000)
    # standard errors at 40,000: mean 0.005, standard deviation 0.0035; bounds are five of them
    assert abs(values.mean()) < 0.025
    assert abs(values.std() - 1.0) < 0.018
    np.testing.assert_array_equal(values[:100], normal("test", 100))
    assert not np.array_equal(values[:100], normal("other", 100))


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize(
    "text",
    [
        "yes no",
        " a  b\n\n\tc ",
        "Füße, naïve; 日本語 한국어",
        "👩‍👩‍👧 🎉",
        "\x00\x7f\u2028",
        "x" * 300,
    ],
)
def test_tokenizer_round_trips_any_text(name: str, text: str) -> None:
    tokenizer = Tokenizer.from_file(str(path_of(name) / "tokenizer.json"))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_tokenizers_add_their_special_tokens() -> None:
    decoder = Tokenizer.from_file(str(path_of("tiny-qwen3") / "tokenizer.json"))
    assert decoder.encode("yes").tokens == ["yes", "<|endoftext|>"]
    encoder = Tokenizer.from_file(str(path_of("tiny-bert") / "tokenizer.json"))
    pair = encoder.encode("yes", " no")
    assert pair.tokens == ["[CLS]", "yes", "[SEP]", "\u0120no", "[SEP]"]
    assert pair.type_ids == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-llama"])
def test_reranker_reads_single_tokens_after_its_own_template(name: str) -> None:
    folder = path_of(name)
    spec = read_spec(folder)
    assert spec == CHECKPOINTS[name].reranker
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.encode(spec.yes_text, add_special_tokens=False).ids == [spec.yes]
    assert tokenizer.encode(spec.no_text, add_special_tokens=False).ids == [spec.no]
    prompt = (
        Environment(autoescape=False)
        .from_string((folder / "reranker.jinja").read_text())
        .render(instruction=spec.instruction, query="2 < 3?", document="Two & three.")
    )
    assert prompt.endswith("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert "<Query>: 2 < 3?\n<Document>: Two & three.<|im_end|>" in prompt
    # the answer's token does not depend on what stands before it
    answered = tokenizer.encode(prompt + spec.yes_text, add_special_tokens=False).ids
    assert answered == [*tokenizer.encode(prompt, add_special_tokens=False).ids, spec.yes]


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownCheckpoint, match=r"name='tiny-gpt'.*tiny-bert.*tiny-qwen3"):
        path_of("tiny-gpt")


def test_generated_checkpoints_are_always_available(tmp_path: Path) -> None:
    listed = available(cache=CheckpointCache(root=tmp_path))
    assert [c.name for c in listed] == list(GENERATORS)

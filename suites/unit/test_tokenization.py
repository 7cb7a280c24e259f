"""Token ids against transformers' reading of the same folder; prompts that are refused.

Passes wrongly if ids agreed and segments were not compared. Ruled out by
suites/meta/test_suites_can_fail.py: `segments-are-dropped`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import transformers

from engine.errors import CheckpointError, ConfigurationError, RequestError
from engine.tokenization import Tokenizer
from harness.checkpoints.catalogue import path_of
from harness.checkpoints.reranker import read_spec

NAMES = ("tiny-qwen3", "tiny-llama", "tiny-bert")
TEXTS = ("a", "Hello, world!", "naïve café — 東京 🙂", " two  spaces\nand\ttabs ", "yes " * 700)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "model"
    shutil.copytree(path_of("tiny-qwen3"), copy)
    return copy


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_ids_are_the_references(name: str, text: str) -> None:
    reference = transformers.AutoTokenizer.from_pretrained(path_of(name))
    prompt = Tokenizer(path_of(name)).encode(text)
    assert list(prompt.token_ids) == reference(text, truncation=False)["input_ids"]
    assert prompt.type_ids == ()


def test_pairs_put_the_document_in_segment_one() -> None:
    reference = transformers.AutoTokenizer.from_pretrained(path_of("tiny-bert"))
    prompt = Tokenizer(path_of("tiny-bert")).encode_pair("what is it", "a long answer to it")
    expected = reference("what is it", "a long answer to it")
    assert list(prompt.token_ids) == expected["input_ids"]
    assert list(prompt.type_ids) == expected["token_type_ids"]
    assert set(prompt.type_ids) == {0, 1}


def test_a_tokenizer_file_that_truncates_or_pads_is_not_obeyed(folder: Path) -> None:
    file = folder / "tokenizer.json"
    data = json.loads(file.read_text())
    data["truncation"] = {
        "direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0,
    }  # fmt: skip
    data["padding"] = {
        "strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "x",
    }  # fmt: skip
    file.write_text(json.dumps(data))
    text = "one two three four five"
    usual = Tokenizer(path_of("tiny-qwen3")).encode(text)
    assert Tokenizer(folder).encode(text) == usual
    assert len(usual.token_ids) > 3


def test_rerank_prompts_are_the_template_around_query_and_document() -> None:
    tokenizer, spec = Tokenizer(path_of("tiny-qwen3")), read_spec(path_of("tiny-qwen3"))
    reference = transformers.AutoTokenizer.from_pretrained(path_of("tiny-qwen3"))
    prompt = tokenizer.encode_rerank("what <is> it?", "this & that")
    text = reference.decode(prompt.token_ids)
    assert f"<Instruct>: {spec.instruction}\n" in text
    assert "<Query>: what <is> it?\n<Document>: this & that<|im_end|>" in text
    assert text.endswith("</think>\n\n")  # the answer is read right here: nothing may follow
    assert list(prompt.token_ids) == reference(text, add_special_tokens=False)["input_ids"]


def test_an_instruction_of_the_callers_own_replaces_the_default() -> None:
    tokenizer = Tokenizer(path_of("tiny-qwen3"))
    usual, special = (tokenizer.encode_rerank("q", "d", i) for i in (None, "Find duplicates"))
    assert usual != special
    assert tokenizer.encode_rerank("q", "d", read_spec(path_of("tiny-qwen3")).instruction) == usual


def test_special_tokens_are_added_to_a_rerank_prompt_only_where_the_folder_says(
    folder: Path,
) -> None:
    bare = Tokenizer(folder).encode_rerank("q", "d").token_ids
    spec = json.loads((folder / "reranker.json").read_text())
    (folder / "reranker.json").write_text(json.dumps(spec | {"add_special_tokens": True}))
    ended = Tokenizer(folder).encode_rerank("q", "d").token_ids
    assert ended[: len(bare)] == bare
    assert len(ended) == len(bare) + 1


def test_the_vocabulary_is_counted_with_added_tokens() -> None:
    for name in NAMES:
        reference = transformers.AutoTokenizer.from_pretrained(path_of(name))
        assert Tokenizer(path_of(name)).vocab_size == len(reference)


def test_empty_prompts_are_refused_by_name() -> None:
    decoder, encoder = Tokenizer(path_of("tiny-qwen3")), Tokenizer(path_of("tiny-bert"))
    with pytest.raises(RequestError, match="text is empty"):
        decoder.encode("")
    with pytest.raises(RequestError, match="document is empty"):
        encoder.encode_pair("a", "")
    with pytest.raises(RequestError, match="query is empty"):
        decoder.encode_rerank("", "a")


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(RequestError, match=r"not valid Unicode text .* at 2"):
        Tokenizer(path_of("tiny-qwen3")).encode("ab\ud800")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json, got no such file"):
        Tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"cannot read .*tokenizer\.json"):
        Tokenizer(tmp_path)


def test_a_folder_that_is_no_reranker_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"reranker\.json and reranker\.jinja"):
        Tokenizer(path_of("tiny-bert")).encode_rerank("q", "d")
    (folder / "reranker.jinja").write_text("{{ instruction }} {{ quary }}")
    with pytest.raises(CheckpointError, match="'quary' is undefined"):
        Tokenizer(folder).encode_rerank("q", "d")
    (folder / "reranker.jinja").write_text("{% if %}")
    with pytest.raises(CheckpointError, match="cannot use"):
        Tokenizer(folder).encode_rerank("q", "d")
    (folder / "reranker.json").write_text('{"yes": 1, "no": 2}')
    with pytest.raises(CheckpointError, match="expected a string and a boolean"):
        Tokenizer(folder).encode_rerank("q", "d")


@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-bert"])
def test_pieces_are_what_a_reader_finds_in_the_text(name: str) -> None:
    tokenizer = Tokenizer(path_of(name))
    ids = tokenizer.encode("the quick brown fox").token_ids
    pieces = tokenizer.pieces(ids)
    assert len(pieces) == len(ids)
    assert "".join("".join(pieces).split()).find("thequickbrownfox") >= 0

"""Truncation: what is kept of a prompt, over HTTP and by the tokenizer, and where it is refused.

Passes wrongly if what is cut on the left and on the right were the same. Ruled out by
suites/meta/test_suites_can_fail.py: `prompts-are-always-cut-on-the-right`.
"""

from __future__ import annotations

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import RequestError
from engine.tokenization import Tokenizer
from engine.truncation import SIDES, Truncation
from harness.checkpoints.catalogue import path_of
from suites.unit.server.serving import MAX_LEN, Server

TEXT = "a text of several words, longer than what is kept of it"
NAMES = ("tiny-qwen3", "tiny-bert")
TOKENIZERS = {name: Tokenizer(path_of(name)) for name in NAMES}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", NAMES)
@given(kept=st.integers(3, 60))
def test_the_kept_ids_are_the_references(name: str, side: str, kept: int) -> None:
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(path_of(name) / "tokenizer.json"), truncation_side=side
    )
    expected = theirs(TEXT, truncation=True, max_length=kept)["input_ids"]
    found = TOKENIZERS[name].encode(TEXT, Truncation(max_tokens=kept, side=side))
    assert list(found.token_ids) == expected
    whole = TOKENIZERS[name].encode(TEXT)
    assert len(found.token_ids) == min(kept, len(whole.token_ids))


@given(ids=st.lists(st.integers(0, 9), min_size=1, max_size=9), kept=st.integers(1, 12))
def test_ids_are_cut_on_the_side_that_is_asked_for(ids: list[int], kept: int) -> None:
    left = Truncation(max_tokens=kept, side="left").cut(tuple(ids))
    right = Truncation(max_tokens=kept).cut(tuple(ids))
    assert list(left) == ids[max(len(ids) - kept, 0) :]
    assert list(right) == ids[:kept]


def test_no_room_beside_special_tokens_is_refused() -> None:
    with pytest.raises(RequestError, match=r"leaves no room beside 2 special tokens.*at least 3"):
        TOKENIZERS["tiny-bert"].encode("a", Truncation(max_tokens=2))


@given(count=st.integers(1, 40))
def test_a_shortened_text_has_no_more_tokens(count: int) -> None:
    tokenizer = TOKENIZERS["tiny-bert"]
    whole = tokenizer.encode(TEXT).token_ids[1:-1]
    found = tokenizer.shortened(TEXT, count)
    assert tokenizer.encode(found).token_ids[1:-1] == whole[:count]


def test_a_long_prompt_is_cut_only_when_asked(server: Server) -> None:
    long = [5 + i % 90 for i in range(MAX_LEN + 9)]

    def embedding(ids: list[int], **fields: object) -> object:
        answer = server.ask("/v1/embeddings", {"input": ids, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()["data"][0]["embedding"]

    assert server.ask("/v1/embeddings", {"input": long}).status_code == 400
    assert embedding(long, truncate_prompt_tokens=-1) == embedding(long[:MAX_LEN])
    last = embedding(long, truncate_prompt_tokens=7, truncation_side="left")
    assert last == embedding(long[-7:]) != embedding(long[:7])


@pytest.mark.parametrize("path", ["/v1/embeddings", "/pooling", "/classify"])
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"truncate_prompt_tokens": MAX_LEN + 1}, f"to {MAX_LEN}, or an integer from -1 to -1"),
        ({"truncate_prompt_tokens": 0}, f"to {MAX_LEN}, or an integer from -1 to -1"),
        ({"truncation_side": "left"}, "does not apply without truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": True}, f"to {MAX_LEN}, or an integer from -1 to -1"),
    ],
)
def test_what_does_not_apply_is_refused(
    server: Server, path: str, fields: dict[str, object], message: str
) -> None:
    task = {"task": "embed"} if path == "/pooling" else {}
    answer = server.ask(path, {"input": "a", **task, **fields})
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_a_cross_encoder_shortens_documents_and_not_its_prompt(server: Server) -> None:
    def scores(document: str, **fields: object) -> object:
        body = {"queries": "q", "documents": document, **fields}
        return server.ask("/score", body).json()

    tokenizer = TOKENIZERS["tiny-qwen3"]
    short = tokenizer.shortened(TEXT, 4)
    assert scores(TEXT, max_tokens_per_doc=4)["data"] == scores(short)["data"]
    assert scores(TEXT)["data"] != scores(short)["data"]
    assert "unknown parameter" in scores(TEXT, truncate_prompt_tokens=9)["error"]["message"]


def test_an_activation_can_be_named(server: Server) -> None:
    def values(activation: object) -> object:
        answer = server.ask("/classify", {"input": "a", "activation": activation})
        return answer.json()["data"][0] if answer.status_code == 200 else answer.json()["error"]

    assert values("identity") == values(activation=False)
    assert values("sigmoid") == values(activation=True)
    assert "['identity', 'sigmoid']" in values("softmax")["message"]


def test_a_length_of_no_use_is_refused_by_itself() -> None:
    for length in (0, -2, 9):
        with pytest.raises(RequestError, match="expected 1 to 8, or -1 for as many"):
            Truncation.asked(length, "right", 8)
    with pytest.raises(RequestError, match="truncation_side='middle' is not valid"):
        Truncation.asked(1, "middle", 8)

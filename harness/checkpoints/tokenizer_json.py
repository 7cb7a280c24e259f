"""`tokenizer.json` documents for generated checkpoints, in the `tokenizers` library's file format.

The document is written out rather than serialised by the library, so its bytes do not depend on the
library's version; the tests load it with the library and hold it to round trips and goldens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from harness.checkpoints.bpe import Encoding, learn
from harness.checkpoints.training_text import TRAINING_TEXT

VOCAB_SIZE = 1024
END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
DECODER_SPECIALS = (END_OF_TEXT, TURN_START, TURN_END, "<think>", "</think>")
ENCODER_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
ANSWERS = ("yes", "no", " yes", " no")
"""Always one token each, so that a yes/no reranker can read two rows of the LM head."""


def decoder_tokenizer() -> dict[str, Any]:
    """Qwen3-Embedding's arrangement: pieces first, specials last, `<|endoftext|>` appended."""
    encoding = _encoding(VOCAB_SIZE - len(DECODER_SPECIALS))
    vocabulary = [*encoding.pieces, *DECODER_SPECIALS]
    end = _special(END_OF_TEXT, 0)
    template = {
        "type": "TemplateProcessing",
        "single": [_sequence("A", 0), end],
        "pair": [_sequence("A", 0), _sequence("B", 0), end],
        "special_tokens": _template_specials((END_OF_TEXT,), vocabulary),
    }
    return _document(encoding, vocabulary, DECODER_SPECIALS, template)


def encoder_tokenizer() -> dict[str, Any]:
    """BERT's arrangement: specials first, `[CLS] A [SEP]`; a pair adds `B [SEP]` of type 1."""
    encoding = _encoding(VOCAB_SIZE - len(ENCODER_SPECIALS))
    vocabulary = [*ENCODER_SPECIALS, *encoding.pieces]
    single = [_special("[CLS]", 0), _sequence("A", 0), _special("[SEP]", 0)]
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, _sequence("B", 1), _special("[SEP]", 1)],
        "special_tokens": _template_specials(("[CLS]", "[SEP]"), vocabulary),
    }
    return _document(encoding, vocabulary, ENCODER_SPECIALS, template)


def roberta_tokenizer() -> dict[str, Any]:
    """XLM-R's arrangement: specials first, `<s> A </s>`; a pair adds `</s> B </s>`, type 0 too."""
    encoding = _encoding(VOCAB_SIZE - len(ROBERTA_SPECIALS))
    vocabulary = [*ROBERTA_SPECIALS, *encoding.pieces]
    end = _special("</s>", 0)
    single = [_special("<s>", 0), _sequence("A", 0), end]
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, end, _sequence("B", 0), end],
        "special_tokens": _template_specials(("<s>", "</s>"), vocabulary),
    }
    return _document(encoding, vocabulary, ROBERTA_SPECIALS, template)


def token_id(document: dict[str, Any], text: str) -> int:
    """The id of the token spelt `text` (a space counts) in a tokenizer document."""
    vocabulary: dict[str, int] = document["model"]["vocab"]
    return vocabulary[text.replace(" ", "\u0120")]


@lru_cache(maxsize=1)
def _encoding(size: int) -> Encoding:
    return learn(TRAINING_TEXT, ANSWERS, size)


def _document(
    encoding: Encoding,
    vocabulary: Sequence[str],
    specials: Sequence[str],
    post_processor: dict[str, Any],
) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocabulary.index(content),
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for content in specials
        ],
        "normalizer": None,
        "pre_tokenizer": _byte_level(add_prefix_space=False),
        "post_processor": post_processor,
        "decoder": _byte_level(add_prefix_space=False),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {piece: place for place, piece in enumerate(vocabulary)},
            "merges": [list(pair) for pair in encoding.merges],
        },
    }


def _byte_level(*, add_prefix_space: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": False,
        "use_regex": True,
    }


def _sequence(name: str, type_id: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": type_id}}


def _special(content: str, type_id: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": content, "type_id": type_id}}


def _template_specials(contents: Sequence[str], vocabulary: Sequence[str]) -> dict[str, Any]:
    return {
        content: {"id": content, "ids": [vocabulary.index(content)], "tokens": [content]}
        for content in contents
    }

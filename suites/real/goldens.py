"""Stored token ids, made once by the Hugging Face tokenizer, against the engine's own tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

from engine.tokenization import Tokenizer

GOLDENS = Path(__file__).parents[1] / "unit" / "checkpoints" / "goldens"


def check(name: str, folder: Path) -> int:
    """Compare every stored text and pair that has tokens; returns how many there were."""
    tokenizer = Tokenizer(folder)
    cases = json.loads((GOLDENS / f"tokens-{name}.json").read_text(encoding="utf-8"))["cases"]
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    segments, compared = config.get("type_vocab_size", 0) > 1, 0
    for case in cases:
        # The engine refuses what is empty, and always adds the special tokens of an embedder.
        if not case["add_special_tokens"] or not case["text"] or not case["token_ids"]:
            continue
        if case["pair"] is None:
            made = tokenizer.encode(case["text"])
        elif case["pair"]:
            made = tokenizer.encode_pair(case["text"], case["pair"])
        else:
            continue
        assert list(made.token_ids) == case["token_ids"], (case["text"], case["pair"])
        if segments:  # a model without a table of them is not given any
            types = list(made.type_ids or [0] * len(made.token_ids))
            assert types == case["type_ids"], case["text"]
        else:
            assert not made.type_ids
        compared += 1
    return compared

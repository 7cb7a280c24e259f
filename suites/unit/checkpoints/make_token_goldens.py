"""Writes `goldens/tokens-NAME.json`: what the Hugging Face tokenizer makes of difficult texts.

    python -m suites.unit.checkpoints.make_token_goldens

Run it by hand, with the fetched checkpoints in the cache, when a text is added here, and
review the diff.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import transformers
from transformers import AutoTokenizer

from harness.checkpoints.catalogue import path_of

NAMES = ("minilm", "smollm2", "tiny-qwen3", "tiny-bert")
GOLDENS = Path(__file__).parent / "goldens"
SENTENCE = "The old bridge, closed since 1987, carries 12,400 cars a day (3.5 % more than planned)."
TEXTS = (
    "",
    " ",
    "\n\n\t ",
    "a",
    "yes",
    " no",
    "What is the capital of France?",
    "  two  spaces   and\ttabs\r\nand lines\n",
    "I'm sure they've said it's what we'd call “fine” — weren't they?",
    "UPPER lower CamelCase snake_case kebab-case",
    "0 1 12 123 1234 12345678 3.14159 1e-5 0xFF ½ ٣",
    "def f(x: int) -> int:\n    return x ** 2  # ≠ x ^ 2\n",
    'for (i = 0; i < n; ++i) { a[i] += "\\n"; }',
    "https://example.org/a?b=c&d=%20e#f user@example.org",
    "Straße, naïve, œuvre, Łódź, İstanbul, cafe\u0301",
    "Сегодня хорошая погода.",
    "今天天气很好。日本語の文です。오늘은 날씨가 좋습니다.",
    "مرحبا بالعالم שלום สวัสดี नमस्ते",
    "🎉 👩\u200d👩\u200d👧 🇫🇷 ❤\ufe0f 👍🏽",
    "zero\u200bwidth soft\u00adhyphen nbsp\u00a0here bom\ufeff end",
    "\x00\x01\x7f\u2028\ufffd",
    "[CLS] [SEP] [MASK] <|im_start|>user <|im_end|> <|endoftext|> </s>",
    "x" * 120,
    "antidisestablishmentarianism",
    " ".join([SENTENCE] * 12),
)
PAIRS = (
    ("What is the capital of France?", "Paris is the capital of France."),
    ("今天", "🎉 party"),
    ("a", ""),
    ("", "b"),
    (SENTENCE, " ".join([SENTENCE] * 3)),
)


def golden(name: str) -> dict[str, Any]:
    """Every text alone (with and without special tokens) and every pair, as one JSON document."""
    tokenizer: Any = AutoTokenizer.from_pretrained(path_of(name), local_files_only=True)
    questions = [(text, None, special) for text in TEXTS for special in (True, False)]
    questions += [(first, second, True) for first, second in PAIRS]
    cases = []
    for text, pair, special in questions:
        # As a batch of one: asked singly, transformers takes an empty second text for no pair.
        made = tokenizer(
            [text],
            None if pair is None else [pair],
            add_special_tokens=special,
            return_token_type_ids=True,
            truncation=False,
        )
        cases.append(
            {
                "text": text,
                "pair": pair,
                "add_special_tokens": special,
                "token_ids": made["input_ids"][0],
                "type_ids": made["token_type_ids"][0],
            }
        )
    return {"made_by": f"transformers {transformers.__version__} AutoTokenizer", "cases": cases}


def write(name: str, file: Path) -> None:
    """One case a line, so that a diff shows which text changed."""
    document = golden(name)
    lines = ",\n".join("  " + json.dumps(case) for case in document["cases"])
    file.write_text(f'{{"made_by": {json.dumps(document["made_by"])},\n "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    for each in NAMES:
        write(each, GOLDENS / f"tokens-{each}.json")

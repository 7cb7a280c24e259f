"""How a language model becomes a yes/no reranker: two small files in the model folder.

`reranker.jinja`: the prompt, a Jinja template over `instruction`, `query` and `document`. Render it
with autoescaping off. It needs no particular newline settings.

`reranker.json`:

    {"yes": 123, "no": 456,           rows of the LM head; score = sigmoid(logit_yes - logit_no)
     "yes_text": "yes", "no_text": "no",   what those tokens spell
     "instruction": "Given a ...",    used when the caller gives none
     "add_special_tokens": false,     the template is the whole prompt: append nothing to it
     "why": "..."}                    why these two tokens and not a neighbouring spelling

The wording of the prompt is Qwen3-Reranker's (https://huggingface.co/Qwen/Qwen3-Reranker-0.6B).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

TEMPLATE_FILE, SPEC_FILE = "reranker.jinja", "reranker.json"
DEFAULT_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"

# The last newline is an expression because Jinja by default drops a file's final newline, and the
# answer is read right after it.
_PROMPT = """\
<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. \
Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: {{ instruction }}
<Query>: {{ query }}
<Document>: {{ document }}<|im_end|>
<|im_start|>assistant"""
CHAT_TEMPLATE = _PROMPT + '{{ "\\n" }}'
"""For an instruct model that answers at once."""
THINKING_TEMPLATE = _PROMPT + '\n<think>\n\n</think>{{ "\\n\\n" }}'
"""For a Qwen3-like model, whose thinking is given as already over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSpec:
    """The contents of `reranker.json`: token ids index rows of the LM head."""

    yes: int
    no: int
    yes_text: str
    no_text: str
    why: str
    instruction: str = DEFAULT_INSTRUCTION
    add_special_tokens: bool = False

    def write(self, folder: Path, template: str) -> None:
        """Publish this spec and its prompt template into a model folder."""
        (folder / TEMPLATE_FILE).write_text(template, encoding="utf-8")
        (folder / SPEC_FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read_spec(folder: Path) -> RerankerSpec:
    """The spec published in a model folder. Raises FileNotFoundError if it is not a reranker."""
    return RerankerSpec(**json.loads((folder / SPEC_FILE).read_text(encoding="utf-8")))

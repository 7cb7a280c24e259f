"""Token ids of a case's prompts from the checkpoint's own files, for systems that take ids.

Independent of our engine: the `tokenizers` library reads `tokenizer.json`, Jinja the reranker's
template (`reranker.json` says whether special tokens are added to it).
"""

from __future__ import annotations

from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from harness.case import Case, Prompt
from harness.checkpoints.reranker import TEMPLATE_FILE, RerankerSpec
from harness.systems.base import Encoded


class PromptTokens:
    """Owns: the tokenizer of one checkpoint. Nothing is truncated or padded."""

    def __init__(self, folder: Path, reranker: RerankerSpec | None) -> None:
        self._folder, self._reranker = folder, reranker
        self._loaded: Tokenizer | None = None

    @property
    def _tokenizer(self) -> Tokenizer:
        if self._loaded is None:
            self._loaded = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
            self._loaded.no_truncation()
            self._loaded.no_padding()
        return self._loaded

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        """One for each prompt."""
        return tuple(self._one(prompt, case.task) for prompt in case.prompts)

    def _one(self, prompt: Prompt, task: str) -> Encoded:
        if prompt.tokens is not None:
            return Encoded(token_ids=prompt.tokens)
        if prompt.text is not None:
            found = self._tokenizer.encode(prompt.text)
        elif task == "score" and self._reranker is not None:
            found = self._tokenizer.encode(
                self.rendered(prompt), add_special_tokens=self._reranker.add_special_tokens
            )
        else:
            found = self._tokenizer.encode(prompt.query or "", prompt.document or "")
        types = tuple(found.type_ids) if any(found.type_ids) else ()
        return Encoded(token_ids=tuple(found.ids), type_ids=types)

    def rendered(self, prompt: Prompt) -> str:
        """A pair as the reranker's template has it."""
        assert self._reranker is not None, "only a reranker has a template"
        template = (self._folder / TEMPLATE_FILE).read_text(encoding="utf-8")
        return (
            ImmutableSandboxedEnvironment()
            .from_string(template)
            .render(
                instruction=self._reranker.instruction,
                query=prompt.query,
                document=prompt.document,
            )
        )

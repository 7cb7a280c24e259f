"""From text to token ids, as the checkpoint's tokenizer.json says.

Never padded, and truncated only where the caller asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tokenizers import Tokenizer as FastTokenizer

from engine.errors import CheckpointError, ConfigurationError, RequestError
from engine.jsonfile import read_json_object
from engine.truncation import Truncation

if TYPE_CHECKING:
    from jinja2 import Template
    from tokenizers import Encoding

TOKENIZER_FILE = "tokenizer.json"
RERANKER_FILE, RERANKER_TEMPLATE_FILE = "reranker.json", "reranker.jinja"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizedPrompt:
    """A prompt as a request takes it."""

    token_ids: tuple[int, ...]
    type_ids: tuple[int, ...]
    """Segment of each token; empty when all are in segment 0, or the model has no segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RerankPrompt:
    template: Template
    instruction: str
    add_special_tokens: bool


class Tokenizer:
    """The tokenizer of a model folder.

    Raises CheckpointError when the folder has no readable tokenizer.json.
    """

    def __init__(self, path: str | Path) -> None:
        self._folder = Path(path)
        file = self._folder / TOKENIZER_FILE
        if not file.is_file():
            raise CheckpointError(
                f"expected {file}, got no such file. Save the tokenizer in its fast format beside "
                "the weights, or send token ids"
            )
        try:
            self._tokenizer = FastTokenizer.from_file(str(file))
        except Exception as error:  # the library raises no narrower one
            raise CheckpointError(f"cannot read {file}: {error}. Download it again") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._has_segments = _has_segments(self._folder)

    @property
    def vocab_size(self) -> int:
        """Number of tokens, added ones included; the model may have more embedding rows."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def pieces(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """The text of each token by itself; a part of a character shows as U+FFFD."""
        return tuple(
            self._tokenizer.decode([token], skip_special_tokens=False) for token in token_ids
        )

    @property
    def num_special_tokens(self) -> int:
        """Tokens that a single text gets beside its own."""
        return int(self._tokenizer.num_special_tokens_to_add(is_pair=False))

    def encode(self, text: str, truncation: Truncation | None = None) -> TokenizedPrompt:
        """One text, with the special tokens of a single prompt, which truncation leaves whole.

        Raises RequestError for an empty text, or for no room beside the special tokens.
        """
        if truncation is None:
            return self._encode("text", text)
        _refuse_empty("text", text)
        special = self.num_special_tokens
        if truncation.max_tokens <= special:
            raise RequestError(
                f"truncate_prompt_tokens={truncation.max_tokens} leaves no room beside {special} "
                f"special tokens: expected at least {special + 1}"
            )
        encoding: Encoding = self._tokenizer.encode(text, add_special_tokens=False)
        encoding.truncate(truncation.max_tokens - special, direction=truncation.side)
        encoding = self._tokenizer.post_process(encoding, add_special_tokens=True)
        return TokenizedPrompt(token_ids=tuple(encoding.ids), type_ids=())

    def encode_rendered(self, text: str) -> TokenizedPrompt:
        """A whole prompt: special tokens that it spells are read as such, and none is added."""
        return self._encode("prompt", text, add_special_tokens=False)

    def shortened(self, text: str, max_tokens: int) -> str:
        """The part of a text that its first `max_tokens` tokens, special ones apart, stand for."""
        _refuse_empty("text", text)
        encoding: Encoding = self._tokenizer.encode(text, add_special_tokens=False)
        if len(encoding.ids) <= max_tokens:
            return text
        return text[: encoding.offsets[max_tokens - 1][1]]

    def encode_pair(self, query: str, document: str) -> TokenizedPrompt:
        """A pair for an encoder: special tokens between, and the document in segment 1."""
        return self._encode("query", query, "document", document)

    def encode_rerank(
        self, query: str, document: str, instruction: str | None = None
    ) -> TokenizedPrompt:
        """A pair in the prompt that a yes/no reranker was trained on: `reranker.jinja` rendered.

        Raises:
            ConfigurationError: the folder has no `reranker.json` and `reranker.jinja`.
            RequestError: query or document is empty.
        """
        prompt = self._rerank_prompt
        for name, text in (("query", query), ("document", document)):
            _refuse_empty(name, text)
        text = prompt.template.render(
            instruction=prompt.instruction if instruction is None else instruction,
            query=query,
            document=document,
        )
        return self._encode("prompt", text, add_special_tokens=prompt.add_special_tokens)

    @cached_property
    def _rerank_prompt(self) -> _RerankPrompt:
        from jinja2 import Environment, StrictUndefined, TemplateError  # noqa: PLC0415 - few need it

        spec_file, file = (self._folder / f for f in (RERANKER_FILE, RERANKER_TEMPLATE_FILE))
        if not spec_file.is_file() or not file.is_file():
            raise ConfigurationError(
                f"expected {RERANKER_FILE} and {RERANKER_TEMPLATE_FILE} in {self._folder} to build "
                "a reranker's prompt, got neither or one of them. Use a reranker's folder"
            )
        spec = read_json_object(spec_file)
        instruction, special = spec.get("instruction"), spec.get("add_special_tokens")
        if not isinstance(instruction, str) or not isinstance(special, bool):
            raise CheckpointError(
                f"instruction={instruction!r}, add_special_tokens={special!r} in {spec_file}: "
                "expected a string and a boolean"
            )
        # Prompts are no HTML: autoescaping would change the text that the model reads.
        environment = Environment(autoescape=False, undefined=StrictUndefined)
        try:
            template = environment.from_string(file.read_text(encoding="utf-8"))
            template.render(instruction="", query="", document="")
        except (TemplateError, UnicodeDecodeError) as error:
            raise CheckpointError(
                f"cannot use {file}: {error}. Expected a Jinja template over instruction, query "
                "and document"
            ) from error
        return _RerankPrompt(template=template, instruction=instruction, add_special_tokens=special)

    def _encode(
        self,
        name: str,
        text: str,
        pair_name: str = "",
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
    ) -> TokenizedPrompt:
        _refuse_empty(name, text)
        if pair is not None:
            _refuse_empty(pair_name, pair)
        encoding: Encoding = self._tokenizer.encode(
            text, pair, add_special_tokens=add_special_tokens
        )
        if not encoding.ids:
            raise RequestError(f"{name}={text!r} has no tokens: expected at least one")
        types = tuple(encoding.type_ids) if self._has_segments else ()
        return TokenizedPrompt(token_ids=tuple(encoding.ids), type_ids=types if any(types) else ())


def _has_segments(folder: Path) -> bool:
    """Whether the model tells segments apart: a template made for BERT marks them for DistilBERT
    as well, which has none. A tokenizer without a model keeps them."""
    file = folder / "config.json"
    return not file.is_file() or read_json_object(file).get("type_vocab_size", 0) > 1


def _refuse_empty(name: str, text: str) -> None:
    if not text:
        raise RequestError(f"{name} is empty: expected text. Leave it out of the batch")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"{name} is not valid Unicode text ({error.reason} at {error.start}). Replace lone "
            "surrogates before sending it"
        ) from error

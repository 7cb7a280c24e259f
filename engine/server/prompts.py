"""`input` in all the forms OpenAI's interface gives it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from engine.server.schema import AnyOf, Field, Integer, Json, ListOf, Text
from engine.server.service import Prompt, Service
from engine.tokenization import TokenizedPrompt
from engine.truncation import Truncation


def input_field(service: Service) -> Field:
    """`input`: a text, texts, one prompt's token ids, or several prompts' token ids."""
    token = Integer(minimum=0, maximum=service.facts.vocab_size - 1)
    most = service.config.max_inputs
    return Field(
        name="input",
        schema=AnyOf(
            (
                Text(),
                ListOf(Text(), max_items=most),
                ListOf(token),
                ListOf(ListOf(token), max_items=most),
            )
        ),
        meaning="A text, a list of texts, one prompt as token ids, or a list of such prompts. "
        "Special tokens are added to texts and to nothing else.",
        required=True,
    )


def prompts_of(service: Service, value: Json, truncation: Truncation | None = None) -> list[Prompt]:
    """The prompts of a checked `input`."""
    if isinstance(value, str):
        return [text_prompt(service, "input", value, truncation)]
    if isinstance(value[0], int):
        return [_token_prompt("input", value, truncation)]
    return [
        text_prompt(service, f"input[{index}]", item, truncation)
        if isinstance(item, str)
        else _token_prompt(f"input[{index}]", item, truncation)
        for index, item in enumerate(value)
    ]


def text_prompt(
    service: Service, place: str, text: str, truncation: Truncation | None = None
) -> Prompt:
    """A text with the special tokens of a single prompt."""
    return Prompt(place=place, encode=partial(service.tokenizer.encode, text, truncation))


def _token_prompt(place: str, ids: Sequence[int], truncation: Truncation | None) -> Prompt:
    kept = tuple(ids) if truncation is None else truncation.cut(tuple(ids))
    tokens = TokenizedPrompt(token_ids=kept, type_ids=())
    return Prompt(place=place, encode=lambda: tokens)

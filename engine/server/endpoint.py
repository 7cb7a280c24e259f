"""An endpoint: one description that checks bodies, documents itself and answers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import RequestError
from engine.pooling.heads.classifier import SCORE_ACTIVATIONS
from engine.request import PoolingOutput, PoolingParams, Task
from engine.server.errors import ApiError, invalid
from engine.server.schema import (
    AnyOf,
    Choice,
    Field,
    Flag,
    Integer,
    Json,
    Object,
    SchemaError,
    Text,
    told,
)
from engine.server.service import Service
from engine.truncation import MODEL_LENGTH, SIDES, Truncation

Values = Mapping[str, Json]
"""A checked body."""

ID = Field(name="id", schema=Text(), required=True)
MODEL = Field(name="model", schema=Text(), required=True)
CREATED = Field(name="created", schema=Integer(minimum=0), required=True)
USAGE = Field(
    name="usage",
    schema=Object(
        (
            Field(name="prompt_tokens", schema=Integer(minimum=0), required=True),
            Field(name="total_tokens", schema=Integer(minimum=0), required=True),
        )
    ),
    required=True,
)
INDEX = Field(name="index", schema=Integer(minimum=0), required=True)
"""Members of many answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A POST route. `offered`: the served model can answer it; if not, it says why."""

    paths: tuple[str, ...]
    """Where it is; all mean the same."""
    name: str
    summary: str
    body: Object
    answer: Object
    run: Callable[[Values], Awaitable[Json]]
    """From a checked body to the answer; raises ApiError."""
    offered: bool


def checked(endpoint: Endpoint, body: Json, model_name: str) -> Values:
    """The body, if it is what the endpoint takes and means the served model."""
    try:
        endpoint.body.check(body, ())
    except SchemaError as error:
        place = told(error.place) if error.place else None
        raise invalid(error.message, param=place, code=error.code) from error
    values: Values = body
    if values.get("model", model_name) != model_name:
        raise ApiError(
            404,
            f"model {values['model']!r} is not served here: expected {model_name!r}. "
            "Leave `model` out or ask /v1/models",
            code="model_not_found",
            param="model",
        )
    return values


def body_of(service: Service, *fields: Field) -> Object:
    """A request's body: these fields, and `model`, which may be left out."""
    model = Field(name="model", schema=Text(), meaning=f"{service.facts.name!r}; may be left out.")
    return Object((model, *fields))


def params_of(values: Values) -> PoolingParams:
    """Per-request choices, under the engine's own names; absent ones are the model's."""
    return PoolingParams(
        normalize=values.get("normalize"),
        activation=values.get("activation"),
        dimensions=values.get("dimensions"),
        prompt_tokens=values.get("prompt_tokens"),
    )


def dimensions_field(service: Service) -> Field:
    """`dimensions`: see PoolingParams."""
    vectors = (Task.EMBED, Task.TOKEN_EMBED)
    widths = [service.facts.widths[task] for task in vectors if task in service.facts.tasks]
    return Field(
        name="dimensions",
        schema=Integer(minimum=1, maximum=max(widths, default=1)),
        meaning="Keep this many leading values, then normalise again if normalising.",
    )


NORMALIZE = Field(
    name="normalize",
    schema=Flag(),
    meaning="L2-normalise every row; by default as the model was trained.",
)
MAX_TOKENS_PER_DOC = Field(
    name="max_tokens_per_doc",
    schema=Integer(minimum=1),
    meaning="Read only this many leading tokens of each document; by default all.",
)


def activation_field(service: Service) -> Field:
    """`activation`: see PoolingParams. Softmax over one class is 1 whatever the logit."""
    classifiers = (Task.CLASSIFY, Task.TOKEN_CLASSIFY)
    widths = [service.facts.widths[task] for task in classifiers if task in service.facts.tasks]
    names = tuple(n for n in SCORE_ACTIVATIONS if n != "softmax" or max(widths, default=1) > 1)
    return Field(
        name="activation",
        schema=AnyOf((Flag(), Choice(names))),
        meaning="false: return logits; or the name of what is applied to them.",
    )


def prompt_fields(service: Service) -> tuple[Field, ...]:
    """`prompt_tokens`, for a model that leaves an instruction out of pooling."""
    if not any("prompt_tokens" in names for names in service.facts.parameters.values()):
        return ()
    meaning = "Leading tokens that are an instruction, which are left out of pooling."
    return (Field(name="prompt_tokens", schema=Integer(minimum=0), meaning=meaning),)


def truncation_fields(service: Service) -> tuple[Field, ...]:
    """How prompts that are one text or token ids are cut."""
    least = service.tokenizer.num_special_tokens + 1
    lengths = Integer(minimum=least, maximum=max(service.facts.max_model_len, least))
    return (
        Field(
            name="truncate_prompt_tokens",
            schema=AnyOf((lengths, Integer(minimum=MODEL_LENGTH, maximum=MODEL_LENGTH))),
            meaning="Keep at most this many tokens of a prompt, special ones included; -1: as many "
            "as the model takes. Left out, a prompt that is too long is refused.",
        ),
        Field(
            name="truncation_side",
            schema=Choice(SIDES),
            meaning="Where a prompt is cut, right by default; only beside truncate_prompt_tokens.",
        ),
    )


def truncation_of(service: Service, values: Values) -> Truncation | None:
    """What a body asks for. Raises ApiError for a side without a length, or a bad length."""
    length, side = values.get("truncate_prompt_tokens"), values.get("truncation_side")
    if length is None:
        if side is not None:
            raise invalid(
                f"truncation_side={side!r} does not apply without truncate_prompt_tokens: expected "
                "both, or neither",
                param="truncation_side",
                code="not_applicable",
            )
        return None
    try:
        return Truncation.asked(length, side or "right", service.facts.max_model_len)
    except RequestError as error:
        raise invalid(str(error), param="truncate_prompt_tokens") from error


def new_id(kind: str) -> str:
    """An id that no other answer has."""
    return f"{kind}-{uuid.uuid4().hex}"


def envelope(service: Service, answer_id: str, data: Json, tokens: int) -> dict[str, Json]:
    """What OpenAI puts around a list of answers."""
    return {
        "id": answer_id,
        "object": "list",
        "created": int(time.time()),
        "model": service.facts.name,
        "data": data,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def envelope_schema(data: Field) -> Object:
    """What `envelope` gives."""
    kind = Field(name="object", schema=Text(const="list"), required=True)
    return Object((ID, kind, CREATED, MODEL, data, USAGE))


def num_tokens(outputs: Sequence[PoolingOutput]) -> int:
    """Prompt tokens, special ones included."""
    return sum(output.num_prompt_tokens for output in outputs)

"""An endpoint: one description that checks bodies, documents itself and answers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.request import PoolingOutput, PoolingParams
from engine.server.errors import ApiError, invalid
from engine.server.schema import (
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
    )


def dimensions_field(service: Service) -> Field:
    """`dimensions`: see PoolingParams."""
    return Field(
        name="dimensions",
        schema=Integer(minimum=1, maximum=service.facts.hidden_size),
        meaning="Keep this many leading values, then normalise again if normalising.",
    )


NORMALIZE = Field(
    name="normalize",
    schema=Flag(),
    meaning="L2-normalise every row; by default as the model was trained.",
)
ACTIVATION = Field(
    name="activation",
    schema=Flag(),
    meaning="false: return logits, without the sigmoid or softmax.",
)


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

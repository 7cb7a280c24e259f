"""/v1/embeddings, as OpenAI has it."""

from __future__ import annotations

import asyncio

from engine.request import Task
from engine.server.encoding import encoded, encoded_schema, encoding_field
from engine.server.endpoint import (
    INDEX,
    NORMALIZE,
    Endpoint,
    Values,
    body_of,
    dimensions_field,
    envelope,
    envelope_schema,
    new_id,
    num_tokens,
    params_of,
    prompt_fields,
    truncation_fields,
    truncation_of,
)
from engine.server.prompts import input_field, prompts_of
from engine.server.schema import Field, Json, ListOf, Object, Text
from engine.server.service import Service


def embeddings(service: Service) -> Endpoint:
    """One vector for each prompt."""

    async def run(values: Values) -> Json:
        answer_id = new_id("embd")
        prompts = prompts_of(service, values["input"], truncation_of(service, values))
        outputs = await service.pool(answer_id, prompts, Task.EMBED, params_of(values))
        encoding = values.get("encoding_format", "float")

        def data() -> Json:
            return [
                {"index": i, "object": "embedding", "embedding": encoded(o.values, encoding)}
                for i, o in enumerate(outputs)
            ]

        found = await asyncio.to_thread(data)
        return envelope(service, answer_id, found, num_tokens(outputs))

    item = Object(
        (
            INDEX,
            Field(name="object", schema=Text(const="embedding"), required=True),
            Field(name="embedding", schema=encoded_schema(nested=False), required=True),
        )
    )
    return Endpoint(
        paths=("/v1/embeddings",),
        name="createEmbeddings",
        summary="One embedding for each prompt.",
        body=body_of(
            service,
            input_field(service),
            dimensions_field(service),
            NORMALIZE,
            *prompt_fields(service),
            *truncation_fields(service),
            encoding_field(service.facts),
        ),
        answer=envelope_schema(Field(name="data", schema=ListOf(item), required=True)),
        run=run,
        offered=Task.EMBED in service.facts.tasks,
    )

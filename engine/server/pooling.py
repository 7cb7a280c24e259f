"""/pooling: any task's raw output."""

from __future__ import annotations

import asyncio

from engine.request import Task
from engine.server.encoding import encoded, encoded_schema, encoding_field
from engine.server.endpoint import (
    INDEX,
    NORMALIZE,
    Endpoint,
    Values,
    activation_field,
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
from engine.server.schema import Choice, Field, Integer, Json, ListOf, Object, Text
from engine.server.service import Service


def pooling(service: Service) -> Endpoint:
    """A vector or a matrix for each prompt, by task."""

    async def run(values: Values) -> Json:
        answer_id = new_id("pool")
        task, truncation = Task(values["task"]), truncation_of(service, values)
        prompts = prompts_of(service, values["input"], truncation)
        outputs = await service.pool(answer_id, prompts, task, params_of(values))
        encoding = values.get("encoding_format", "float")

        def data() -> Json:
            return [
                {
                    "index": i,
                    "object": "pooling",
                    "shape": list(o.values.shape),
                    "data": encoded(o.values, encoding),
                }
                for i, o in enumerate(outputs)
            ]

        found = await asyncio.to_thread(data)
        return envelope(service, answer_id, found, num_tokens(outputs))

    item = Object(
        (
            INDEX,
            Field(name="object", schema=Text(const="pooling"), required=True),
            Field(name="shape", schema=ListOf(Integer(minimum=1)), required=True),
            Field(name="data", schema=encoded_schema(nested=True), required=True),
        )
    )
    tasks = service.facts.tasks
    task = Field(
        name="task",
        schema=Choice(tuple(task.value for task in tasks)),
        meaning="token_... tasks give one row for each token of the prompt, the others one row.",
        required=True,
    )
    return Endpoint(
        paths=("/pooling",),
        name="pool",
        summary="The raw output of any task. A parameter that the task does not have is refused.",
        body=body_of(
            service,
            input_field(service),
            task,
            dimensions_field(service),
            NORMALIZE,
            activation_field(service),
            *prompt_fields(service),
            *truncation_fields(service),
            encoding_field(service.facts),
        ),
        answer=envelope_schema(Field(name="data", schema=ListOf(item), required=True)),
        run=run,
        offered=bool(tasks),
    )

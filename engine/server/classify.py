"""/classify: class probabilities."""

from __future__ import annotations

from engine.request import PoolingOutput, Task
from engine.server.endpoint import (
    INDEX,
    Endpoint,
    Values,
    activation_field,
    body_of,
    envelope,
    envelope_schema,
    new_id,
    num_tokens,
    params_of,
    truncation_fields,
    truncation_of,
)
from engine.server.prompts import input_field, prompts_of
from engine.server.schema import AnyOf, Field, Integer, Json, ListOf, Null, Number, Object, Text
from engine.server.service import Service


def classify(service: Service) -> Endpoint:
    """A distribution over the model's classes for each prompt."""

    def item(index: int, output: PoolingOutput, kind: str) -> Json:
        values = output.values.tolist()
        return {
            "index": index,
            "label": _label(service.facts.labels, values),
            kind: values,
            "num_classes": len(values),
        }

    async def run(values: Values) -> Json:
        answer_id = new_id("class")
        prompts = prompts_of(service, values["input"], truncation_of(service, values))
        outputs = await service.pool(answer_id, prompts, Task.CLASSIFY, params_of(values))
        kind = "logits" if values.get("activation") in (False, "identity") else "probs"
        data = [item(index, output, kind) for index, output in enumerate(outputs)]
        return envelope(service, answer_id, data, num_tokens(outputs))

    answer = Object(
        (
            INDEX,
            Field(
                name="label",
                schema=AnyOf((Text(), Null())),
                meaning="Name of the likeliest class; null when there is one class only.",
                required=True,
            ),
            Field(name="probs", schema=ListOf(Number())),
            Field(name="logits", schema=ListOf(Number()), meaning="Without activation."),
            Field(name="num_classes", schema=Integer(minimum=1), required=True),
        )
    )
    return Endpoint(
        paths=("/classify",),
        name="classify",
        summary="Class probabilities of each prompt.",
        body=body_of(
            service, input_field(service), activation_field(service), *truncation_fields(service)
        ),
        answer=envelope_schema(Field(name="data", schema=ListOf(answer), required=True)),
        run=run,
        offered=Task.CLASSIFY in service.facts.tasks,
    )


def _label(labels: tuple[str, ...], values: list[float]) -> str | None:
    """The first of the likeliest classes; one class alone has nothing to be likelier than."""
    if len(values) == 1:
        return None
    best = max(range(len(values)), key=values.__getitem__)
    return labels[best] if len(labels) == len(values) else f"LABEL_{best}"

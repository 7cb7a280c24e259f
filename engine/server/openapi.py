"""The interface as an OpenAPI 3.1 document, from the descriptions that also check the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.server.endpoint import Endpoint
from engine.server.facts import ModelFacts
from engine.server.schema import AnyOf, Field, Json, Null, Object, Schema, Text

API_VERSION: Final = "1"

ERROR = Object(
    (
        Field(
            name="error",
            schema=Object(
                (
                    Field(name="message", schema=Text(), required=True),
                    Field(name="type", schema=Text(), required=True),
                    Field(name="param", schema=AnyOf((Text(), Null())), required=True),
                    Field(name="code", schema=Text(), required=True),
                )
            ),
            required=True,
        ),
    )
)
"""Every answer that is no success."""

_REFUSALS: Final = {
    "400": "The body is not what is expected, or asks for what does not apply.",
    "404": "Another model is served.",
    "413": "The body or its prompts are too large.",
    "415": "The body is not JSON.",
    "429": "Too much is unanswered; Retry-After says when to come again.",
    "500": "The model's output is not finite, or the server has a bug.",
    "503": "The server is starting its engine again, or is shutting down.",
}


def document(facts: ModelFacts, endpoints: Sequence[Endpoint]) -> Json:
    """What this model can be asked; endpoints that it cannot answer are left out."""
    paths: dict[str, Json] = {
        "/health": {"get": _get("health", "200 while requests are answered, else 503.", ("503",))},
        "/v1/models": {"get": _get("listModels", "The served model.", ())},
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "summary": "Counters for Prometheus.",
                "responses": {"200": {"description": "Text.", "content": {"text/plain": {}}}},
            }
        },
    }
    for endpoint in endpoints:
        for number, path in enumerate(endpoint.paths if endpoint.offered else ()):
            paths[path] = {"post": _post(endpoint, number)}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Pooling engine serving {facts.name}", "version": API_VERSION},
        "paths": paths,
        "components": {"schemas": {"Error": ERROR.to_json()}},
    }


def _post(endpoint: Endpoint, number: int) -> Json:
    return {
        "operationId": endpoint.name + (f"V{number}" if number else ""),
        "summary": endpoint.summary,
        "requestBody": {"required": True, "content": _content(endpoint.body)},
        "responses": {
            "200": {"description": "The answer.", "content": _content(endpoint.answer)},
            **_refused(tuple(_REFUSALS)),
        },
    }


def _get(name: str, summary: str, refusals: tuple[str, ...]) -> Json:
    return {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {}}},
            **_refused(refusals),
        },
    }


def _refused(statuses: Sequence[str]) -> Json:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": _REFUSALS[status], "content": error} for status in statuses}


def _content(schema: Schema) -> Json:
    return {"application/json": {"schema": schema.to_json()}}

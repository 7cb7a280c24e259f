"""What a server says of itself: health, models, metrics, its own description."""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.server.endpoint import Endpoint
from engine.server.errors import ApiError
from engine.server.metrics import Metrics
from engine.server.openapi import document
from engine.server.scoring import Scorer
from engine.server.service import Service
from engine.server.web import error_response, json_response


def state_routes(
    service: Service, scorer: Scorer | None, endpoints: Sequence[Endpoint], metrics: Metrics
) -> list[Route]:
    """Routes that never run the model."""
    description, created, facts = (
        document(service.facts, endpoints),
        int(time.time()),
        service.facts,
    )

    async def health(_: Request) -> Response:
        trouble = service.batcher.trouble
        if trouble:
            return error_response(ApiError(503, trouble, code="unavailable"))
        return json_response({"status": "ok"})

    async def models(_: Request) -> Response:
        card = {
            "id": facts.name,
            "object": "model",
            "created": created,
            "owned_by": "pooling-parity",
            "max_model_len": facts.max_model_len,
            "dtype": facts.dtype,
            "tasks": [task.value for task in facts.tasks],
            "scored_by": None if scorer is None else scorer.method,
        }
        return json_response({"object": "list", "data": [card]})

    async def counters(_: Request) -> Response:
        return Response(metrics.text(), headers={"Content-Type": metrics.content_type})

    async def openapi(_: Request) -> Response:
        return json_response(description)

    return [
        Route("/health", health),
        Route("/v1/models", models),
        Route("/metrics", counters),
        Route("/openapi.json", openapi),
    ]

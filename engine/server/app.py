"""The ASGI application: routes over one batcher, which it starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.server.batcher import Batcher
from engine.server.classify import classify
from engine.server.config import ServerConfig
from engine.server.embeddings import embeddings
from engine.server.errors import ApiError
from engine.server.facts import ModelFacts
from engine.server.metrics import Metrics
from engine.server.pooling import pooling
from engine.server.rerank import rerank
from engine.server.score import score
from engine.server.scoring import scorer_of
from engine.server.service import Service
from engine.server.state import state_routes
from engine.server.web import error_response, handler
from engine.tokenization import Tokenizer


def create_app(config: ServerConfig, batcher: Batcher, metrics: Metrics) -> Starlette:
    """Owns: the batcher from here on, started and stopped with the application's lifespan.

    `app.state.endpoints` are the descriptions that the routes and the document are made from.

    Raises CheckpointError when the model's folder has no tokenizer.
    """
    engine = batcher.engine
    service = Service(
        config=config,
        facts=ModelFacts.of(engine, config.model_name),
        tokenizer=Tokenizer(engine.config.model),
        batcher=batcher,
    )
    scorer = scorer_of(service)
    endpoints = (
        embeddings(service),
        pooling(service),
        classify(service),
        score(service, scorer),
        rerank(service, scorer),
    )
    routes = [
        Route(path, handler(endpoint, service, metrics.http_answered), methods=["POST"])
        for endpoint in endpoints
        for path in endpoint.paths
    ]
    routes += state_routes(service, scorer, endpoints, metrics)
    paths = sorted(route.path for route in routes)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        batcher.start()
        try:
            yield
        finally:
            await asyncio.to_thread(batcher.stop, config.shutdown_timeout_s)

    async def misrouted(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), error
        allowed = (error.headers or {}).get("Allow")
        valid = f"method {allowed}" if allowed else f"one of {', '.join(paths)}"
        told = f"{error.detail}: expected {valid}"
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
        return error_response(ApiError(error.status_code, told, code=code, headers=error.headers))

    async def failed(_: Request, error: Exception) -> Response:
        del error  # the server logs it with its trace; a client is told nothing of our insides
        return error_response(
            ApiError(500, "the server has a bug; its log says more", code="internal_error")
        )

    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: misrouted, Exception: failed},
    )
    app.router.redirect_slashes = False
    app.state.endpoints = endpoints
    return app

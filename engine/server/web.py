"""Between HTTP and JSON values: bodies in, answers and errors out, and who hung up."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from engine.server.endpoint import Endpoint, checked
from engine.server.errors import ApiError, invalid
from engine.server.schema import Json
from engine.server.service import Service

T = TypeVar("T")

CLIENT_CLOSED_REQUEST = 499
"""nginx's status for a client that left; nobody reads it, the metrics count it."""


def handler(
    endpoint: Endpoint, service: Service, answered: Callable[[str, int, float], None]
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """The ASGI side of an endpoint; `answered` hears of its path, status and seconds."""

    async def handle(request: Request) -> Response:
        began, status = time.perf_counter(), 500
        try:
            response = await _answer(endpoint, service, request)
            status = response.status_code
        finally:
            answered(endpoint.paths[0], status, time.perf_counter() - began)
        return response

    return handle


async def _answer(endpoint: Endpoint, service: Service, request: Request) -> Response:
    try:
        body = await _read_json(request, service.config.max_body_bytes)
        values = checked(endpoint, body, service.facts.name)
        answer = await _until_disconnect(request, endpoint.run(values))
        return await asyncio.to_thread(json_response, answer)
    except ApiError as error:
        return error_response(error)
    except ClientDisconnect:
        return Response(status_code=CLIENT_CLOSED_REQUEST)


def json_response(value: Json, status: int = 200) -> Response:
    """JSON in ASCII: a text with a lone surrogate cannot break it. A NaN raises ValueError."""
    return Response(
        json.dumps(value, allow_nan=False, separators=(",", ":")),
        status_code=status,
        media_type="application/json",
    )


def error_response(error: ApiError) -> Response:
    """An error in OpenAI's shape."""
    response = json_response(error.to_json(), error.status)
    response.headers.update(error.headers)
    return response


async def _read_json(request: Request, max_bytes: int) -> Json:
    media = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise ApiError(
            415,
            f"content-type {media!r} is not read here: expected application/json",
            code="unsupported_media_type",
        )
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise ApiError(
                413,
                f"the body is larger than {max_bytes} bytes. Split the request",
                code="body_too_large",
                headers={"Connection": "close"},
            )
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError as error:
        raise invalid("the body is nested too deep", code="invalid_json") from error
    except ValueError as error:
        raise invalid(f"the body is not JSON: {error}", code="invalid_json") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


async def _until_disconnect(request: Request, work: Awaitable[T]) -> T:
    """The work's result; when the client leaves first, the work is cancelled."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

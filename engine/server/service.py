"""From prompts to outputs: what every endpoint that runs the model goes through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.errors import ConfigurationError, RequestError
from engine.request import PoolingOutput, PoolingParams, PoolingRequest, Task
from engine.server.batcher import (
    Batcher,
    FailedError,
    OverloadedError,
    TooLargeError,
    UnavailableError,
)
from engine.server.config import ServerConfig
from engine.server.errors import ApiError, invalid
from engine.server.facts import ModelFacts
from engine.tokenization import TokenizedPrompt, Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt of an HTTP request. `place`: where the client wrote it, such as `input[3]`."""

    place: str
    encode: Callable[[], TokenizedPrompt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What endpoints share. Borrows the batcher, which the application owns."""

    config: ServerConfig
    facts: ModelFacts
    tokenizer: Tokenizer
    batcher: Batcher

    async def pool(
        self, answer_id: str, prompts: Sequence[Prompt], task: Task, params: PoolingParams
    ) -> list[PoolingOutput]:
        """Outputs in the order of the prompts. Raises ApiError; cancelling aborts them all."""
        requests = await asyncio.to_thread(self._requests, answer_id, prompts, task, params)
        try:
            futures = self.batcher.submit(requests)
        except OverloadedError as error:
            raise ApiError(
                429,
                str(error),
                code="overloaded",
                headers={"Retry-After": str(error.retry_after_s)},
            ) from error
        except TooLargeError as error:
            raise ApiError(413, str(error), code="too_large") from error
        except UnavailableError as error:
            raise _unavailable(error) from error
        try:
            outputs = await asyncio.gather(*map(asyncio.wrap_future, futures))
        except (RequestError, ConfigurationError) as error:
            raise invalid(str(error)) from error
        except FailedError as error:
            raise ApiError(
                500, f"the model's head failed on this request: {error}", code="request_failed"
            ) from error
        except UnavailableError as error:
            raise _unavailable(error) from error
        finally:
            for future in futures:  # whoever is left when one failed or the client is gone
                future.cancel()
        for prompt, output in zip(prompts, outputs, strict=True):
            _require_finite(prompt, output)
        return outputs

    def _requests(
        self, answer_id: str, prompts: Sequence[Prompt], task: Task, params: PoolingParams
    ) -> list[PoolingRequest]:
        """Tokenize and check everything before anything runs."""
        return [self._request(answer_id, prompt, task, params) for prompt in prompts]

    def _request(
        self, answer_id: str, prompt: Prompt, task: Task, params: PoolingParams
    ) -> PoolingRequest:
        try:
            tokens = prompt.encode()
        except RequestError as error:
            raise invalid(f"{prompt.place}: {error}", param=prompt.place) from error
        length, limit = len(tokens.token_ids), self.facts.max_model_len
        if length > limit:
            raise invalid(
                f"{prompt.place} has {length} tokens with the special ones: expected at most "
                f"{limit}. Shorten it",
                param=prompt.place,
                code="context_length_exceeded",
            )
        request = PoolingRequest(
            request_id=f"{answer_id}/{prompt.place}",
            token_ids=tokens.token_ids,
            type_ids=tokens.type_ids,
            task=task,
            params=params,
        )
        try:
            self.batcher.engine.check(request)
        except (RequestError, ConfigurationError) as error:
            raise invalid(str(error), code="not_applicable") from error
        return request


def _require_finite(prompt: Prompt, output: PoolingOutput) -> None:
    """JSON has no NaN, and a null in its place would be an answer that nobody gave."""
    if not bool(torch.isfinite(output.values).all()):
        raise ApiError(
            500,
            f"the model's output for {prompt.place} is not finite; half precision may have "
            "overflowed. Nothing is returned in its place",
            code="non_finite_output",
            param=prompt.place,
        )


def _unavailable(error: UnavailableError) -> ApiError:
    return ApiError(503, str(error), code="unavailable", headers={"Retry-After": "1"})

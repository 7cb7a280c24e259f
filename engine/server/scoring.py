"""Two ways to a relevance score; which one a model has follows from its heads.

A cross-encoder reads query and document together and its one-label head judges the pair: for a
yes/no reranker in the prompt that it was trained on, else as a pair of segments. Every other model
that embeds is a bi-encoder: the cosine of the two embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch

from engine.errors import ConfigurationError
from engine.request import PoolingOutput, Task
from engine.server.endpoint import ACTIVATION, Values, dimensions_field, num_tokens, params_of
from engine.server.errors import ApiError, invalid
from engine.server.prompts import text_prompt
from engine.server.schema import Field, Text
from engine.server.service import Prompt, Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A text and where the client wrote it."""

    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One score for each pair, in order, and the tokens that they took."""

    values: tuple[float, ...]
    num_tokens: int


class Scorer(Protocol):
    """Judges pairs; `queries` has as many entries as `documents`, or one for all."""

    method: str
    """What clients are told: cross-encoder or bi-encoder."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Parameters that apply to this way of scoring."""
        ...

    async def score(
        self,
        answer_id: str,
        queries: Sequence[Placed],
        documents: Sequence[Placed],
        values: Values,
    ) -> Scores:
        """Raises ApiError."""
        ...


def scorer_of(service: Service) -> Scorer | None:
    """How the served model scores; None when it neither classifies nor embeds."""
    tasks = service.facts.tasks
    if Task.CLASSIFY in tasks:
        return CrossEncoder(service)
    return BiEncoder(service) if Task.EMBED in tasks else None


class CrossEncoder:
    """The classifier head on the pair; it must have one label."""

    method = "cross-encoder"

    def __init__(self, service: Service) -> None:
        self._service = service
        try:
            service.tokenizer.encode_rerank("query", "document")
            self._has_prompt = True
        except ConfigurationError:
            self._has_prompt = False

    @property
    def fields(self) -> tuple[Field, ...]:
        instruction = Field(
            name="instruction",
            schema=Text(),
            meaning="What makes a document relevant; by default what the model was trained with.",
        )
        return (ACTIVATION, instruction) if self._has_prompt else (ACTIVATION,)

    async def score(
        self,
        answer_id: str,
        queries: Sequence[Placed],
        documents: Sequence[Placed],
        values: Values,
    ) -> Scores:
        if len(queries) == 1:
            queries = list(queries) * len(documents)
        instruction = values.get("instruction")
        prompts = [
            self._prompt(query, document, instruction)
            for query, document in zip(queries, documents, strict=True)
        ]
        outputs = await self._service.pool(answer_id, prompts, Task.CLASSIFY, params_of(values))
        classes = outputs[0].values.numel()
        if classes != 1:
            raise invalid(
                f"{self._service.facts.name} has {classes} classes and gives no score: expected a "
                "model with one. Use /classify",
                code="not_applicable",
            )
        return Scores(
            values=tuple(float(output.values) for output in outputs), num_tokens=num_tokens(outputs)
        )

    def _prompt(self, query: Placed, document: Placed, instruction: str | None) -> Prompt:
        tokenizer = self._service.tokenizer
        encode = (
            partial(tokenizer.encode_rerank, query.text, document.text, instruction)
            if self._has_prompt
            else partial(tokenizer.encode_pair, query.text, document.text)
        )
        return Prompt(place=f"{query.place}+{document.place}", encode=encode)


class BiEncoder:
    """Cosine of two embeddings, each text run once."""

    method = "bi-encoder"

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def fields(self) -> tuple[Field, ...]:
        return (dimensions_field(self._service),)

    async def score(
        self,
        answer_id: str,
        queries: Sequence[Placed],
        documents: Sequence[Placed],
        values: Values,
    ) -> Scores:
        prompts = [
            text_prompt(self._service, item.place, item.text) for item in (*queries, *documents)
        ]
        outputs = await self._service.pool(answer_id, prompts, Task.EMBED, params_of(values))
        split = len(queries)
        ours = outputs[:split] * (len(documents) if split == 1 else 1)
        pairs = zip(ours, outputs[split:], prompts[split:], strict=True)
        return Scores(
            values=tuple(_cosine(a, b, prompt.place) for a, b, prompt in pairs),
            num_tokens=num_tokens(outputs),
        )


def _cosine(query: PoolingOutput, document: PoolingOutput, place: str) -> float:
    """In float64: in float32 a cosine near 1 cannot be told from 1."""
    a, b = query.values.double(), document.values.double()
    found = float(torch.dot(a, b) / (a.norm() * b.norm()))
    if found != found:
        raise ApiError(
            500,
            f"the cosine for {place} is not a number: an embedding is all zeros",
            code="non_finite_output",
            param=place,
        )
    return found

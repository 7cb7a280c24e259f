"""The ways to a relevance score; which one a model has follows from its heads.

A cross-encoder reads query and document together and its one-label head judges the pair: for a
yes/no reranker in the prompt that it was trained on, else as a pair of segments. A listwise
reranker reads all documents of a query at once. Every other model that embeds is a bi-encoder: the
cosine of the two embeddings, or of sparse ones the dot product. One with projected token rows and
no embedding scores by late interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import torch

from engine.errors import ConfigurationError
from engine.request import PoolingOutput, Task
from engine.server.endpoint import (
    MAX_TOKENS_PER_DOC,
    Values,
    activation_field,
    dimensions_field,
    num_tokens,
    params_of,
    truncation_fields,
)
from engine.server.errors import ApiError, invalid
from engine.server.late_interaction import LateInteraction
from engine.server.listwise import Listwise
from engine.server.pooled_pairs import pool_apart
from engine.server.schema import Field, Text
from engine.server.scores import Placed, Scores
from engine.server.service import Prompt, Service
from engine.tokenization import TokenizedPrompt


class Scorer(Protocol):
    """Judges pairs; `queries` has as many entries as `documents`, or one for all."""

    method: str
    """What clients are told: cross-encoder, bi-encoder, late-interaction or listwise."""

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
    """How the served model scores; None when it has no head for it."""
    tasks, rules = service.facts.tasks, service.batcher.engine.rules
    if Task.CLASSIFY in tasks:
        return CrossEncoder(service)
    if rules.closing_token is not None:
        return Listwise(service)
    if rules.is_late_interaction:
        return LateInteraction(service)
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
        fields = (activation_field(self._service), MAX_TOKENS_PER_DOC)
        return (*fields, instruction) if self._has_prompt else fields

    async def score(
        self,
        answer_id: str,
        queries: Sequence[Placed],
        documents: Sequence[Placed],
        values: Values,
    ) -> Scores:
        if len(queries) == 1:
            queries = list(queries) * len(documents)
        prompts = [
            self._prompt(query, document, values)
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

    def _prompt(self, query: Placed, document: Placed, values: Values) -> Prompt:
        return Prompt(
            place=f"{query.place}+{document.place}",
            encode=partial(self._encode, query.text, document.text, values),
        )

    def _encode(self, query: str, document: str, values: Values) -> TokenizedPrompt:
        tokenizer, limit = self._service.tokenizer, values.get("max_tokens_per_doc")
        if limit is not None:
            document = tokenizer.shortened(document, limit)
        if self._has_prompt:
            return tokenizer.encode_rerank(query, document, values.get("instruction"))
        return tokenizer.encode_pair(query, document)


class BiEncoder:
    """Cosine of two embeddings, each text run once; of sparse ones the dot product."""

    method = "bi-encoder"

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def fields(self) -> tuple[Field, ...]:
        if self._service.facts.is_sparse:
            return truncation_fields(self._service)
        return (dimensions_field(self._service), *truncation_fields(self._service))

    async def score(
        self,
        answer_id: str,
        queries: Sequence[Placed],
        documents: Sequence[Placed],
        values: Values,
    ) -> Scores:
        pooled = await pool_apart(
            self._service, answer_id, queries, documents, task=Task.EMBED, values=values
        )
        pairs = zip(pooled.queries, pooled.documents, documents, strict=True)
        if self._service.facts.is_sparse:
            found = tuple(
                float(torch.dot(a.values.double(), b.values.double())) for a, b, _ in pairs
            )
        else:
            found = tuple(_cosine(a, b, document.place) for a, b, document in pairs)
        return Scores(values=found, num_tokens=pooled.num_tokens)


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

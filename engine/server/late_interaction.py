"""Scores by late interaction: MaxSim over the rows of every token, each text run once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from engine.pooling.late_interaction import maxsim
from engine.request import Task
from engine.server.endpoint import Values, dimensions_field, truncation_fields
from engine.server.pooled_pairs import pool_apart
from engine.server.schema import Field
from engine.server.scores import Placed, Scores
from engine.server.service import Service


class LateInteraction:
    """Every token of query and document counts; ColBERT's query padding is not added."""

    method = "late-interaction"

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def fields(self) -> tuple[Field, ...]:
        return (dimensions_field(self._service), *truncation_fields(self._service))

    async def score(
        self,
        answer_id: str,
        queries: Sequence[Placed],
        documents: Sequence[Placed],
        values: Values,
    ) -> Scores:
        pooled = await pool_apart(
            self._service, answer_id, queries, documents, task=Task.TOKEN_EMBED, values=values
        )

        def compared() -> tuple[float, ...]:
            pairs = zip(pooled.queries, pooled.documents, strict=True)
            return tuple(float(maxsim(a.values, b.values)) for a, b in pairs)

        return Scores(values=await asyncio.to_thread(compared), num_tokens=pooled.num_tokens)

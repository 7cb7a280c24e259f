"""Scores by late interaction: MaxSim over the rows of every token, each text run once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from engine.pooling.late_interaction import maxsim
from engine.request import Task
from engine.server.endpoint import (
    Values,
    dimensions_field,
    num_tokens,
    params_of,
    truncation_fields,
    truncation_of,
)
from engine.server.prompts import text_prompt
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
        truncation = truncation_of(self._service, values)
        prompts = [
            text_prompt(self._service, item.place, item.text, truncation)
            for item in (*queries, *documents)
        ]
        params = params_of(values)
        outputs = await self._service.pool(answer_id, prompts, Task.TOKEN_EMBED, params)
        split = len(queries)
        ours = outputs[:split] * (len(documents) if split == 1 else 1)

        def compared() -> tuple[float, ...]:
            pairs = zip(ours, outputs[split:], strict=True)
            return tuple(float(maxsim(a.values, b.values)) for a, b in pairs)

        return Scores(values=await asyncio.to_thread(compared), num_tokens=num_tokens(outputs))

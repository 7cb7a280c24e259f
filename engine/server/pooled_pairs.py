"""Queries and documents pooled apart, each text run once, and paired up again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.request import PoolingOutput, Task
from engine.server.endpoint import Values, num_tokens, params_of, truncation_of
from engine.server.prompts import text_prompt
from engine.server.scores import Placed
from engine.server.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledPairs:
    """`queries` has as many entries as `documents`; `num_tokens`: of every text, once."""

    queries: tuple[PoolingOutput, ...]
    documents: tuple[PoolingOutput, ...]
    num_tokens: int


async def pool_apart(
    service: Service,
    answer_id: str,
    queries: Sequence[Placed],
    documents: Sequence[Placed],
    *,
    task: Task,
    values: Values,
) -> PooledPairs:
    """Run every text by itself; a single query stands beside all documents. Raises ApiError."""
    truncation = truncation_of(service, values)
    prompts = [
        text_prompt(service, item.place, item.text, truncation) for item in (*queries, *documents)
    ]
    outputs = tuple(await service.pool(answer_id, prompts, task, params_of(values)))
    split = len(queries)
    return PooledPairs(
        queries=outputs[:split] * (len(documents) if split == 1 else 1),
        documents=outputs[split:],
        num_tokens=num_tokens(outputs),
    )

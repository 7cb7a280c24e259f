"""Prompts with known hidden states, packed into steps the way a runner packs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from engine.plan import PlanEntry, StepPlan
from engine.pooling.base import PoolingBatch
from engine.pooling.dispatcher import BuiltPart, Pooled, Pooler
from engine.pooling.heads import EmbeddingHead, Head
from engine.pooling.method import ALL, MethodSpec
from engine.request import PoolingParams, PoolingRequest, Task


def pooler_of(
    *methods: str,
    dim: int,
    overlaps_steps: bool = True,
    classifier: Head | None = None,
) -> Pooler:
    """Embeddings by an identity head, so that rows come out as the methods made them."""
    sequence = MethodSpec(names=methods)
    embedding = EmbeddingHead(dim, normalize=False)
    routes: dict[Task, tuple[BuiltPart, ...]] = {
        Task.EMBED: (BuiltPart(method=sequence, head=embedding),),
        Task.TOKEN_EMBED: (BuiltPart(method=ALL, head=embedding),),
    }
    if classifier is not None:
        tokens = BuiltPart(method=ALL, head=classifier)
        routes |= {
            Task.CLASSIFY: (BuiltPart(method=sequence, head=classifier),),
            Task.TOKEN_CLASSIFY: (tokens,),
            Task.EMBED_AND_TOKEN_CLASSIFY: (*routes[Task.EMBED], tokens),
        }
    return Pooler(routes, overlaps_steps=overlaps_steps)


class Prompts:
    """Requests and the hidden state of each of their tokens. Owns: nothing that changes."""

    def __init__(self, dim: int, *, dtype: torch.dtype = torch.float32, seed: int = 0) -> None:
        self.dim = dim
        self.dtype = dtype
        self.requests: dict[str, PoolingRequest] = {}
        self.hidden: dict[str, torch.Tensor] = {}
        self._generator = torch.Generator().manual_seed(seed)

    def add(
        self, request_id: str, num_tokens: int, task: Task, params: PoolingParams | None = None
    ) -> torch.Tensor:
        """Hidden states [num_tokens, dim] of a new request."""
        self.requests[request_id] = PoolingRequest(
            request_id=request_id,
            token_ids=tuple(range(num_tokens)),
            task=task,
            params=params or PoolingParams(),
        )
        rows = torch.randn(num_tokens, self.dim, generator=self._generator)
        self.hidden[request_id] = rows.to(self.dtype)
        return self.hidden[request_id]

    def step(self, index: int, pieces: Sequence[tuple[str, int, int]]) -> StepPlan:
        """The step that runs tokens [start, start + count) of each (request, start, count)."""
        return StepPlan(
            index=index,
            entries=tuple(
                PlanEntry(request_id=r, start=start, count=count, total=self.requests[r].num_tokens)
                for r, start, count in pieces
            ),
        )

    def pack(self, step: StepPlan, *, padding: int = 0) -> tuple[torch.Tensor, PoolingBatch]:
        """A step's hidden states [T + padding, dim], the padding not a number, and its batch."""
        rows = [self.hidden[e.request_id][e.start : e.end] for e in step.entries]
        hidden = torch.cat([*rows, torch.full((padding, self.dim), torch.nan, dtype=self.dtype)])
        ends = torch.tensor([0, *(e.count for e in step.entries)]).cumsum(0)
        return hidden, PoolingBatch.of_step(step, self.requests, ends)


def in_chunks(request_id: str, counts: Iterable[int]) -> Iterator[list[tuple[str, int, int]]]:
    """One piece a step."""
    start = 0
    for count in counts:
        yield [(request_id, start, count)]
        start += count


def pool_all(
    pooler: Pooler, prompts: Prompts, steps: Iterable[Sequence[tuple[str, int, int]]]
) -> dict[str, torch.Tensor]:
    """Answers of everything that finished; each step overwrites the hidden states it leaves.

    An answer that views them shows as not a number, so ownership is checked along the way.
    """
    answers: dict[str, torch.Tensor] = {}
    for index, pieces in enumerate(steps):
        hidden, batch = prompts.pack(prompts.step(index, pieces), padding=1)
        pooled: list[Pooled] = pooler.pool(hidden, batch)
        hidden.fill_(torch.nan)
        assert not {p.request_id for p in pooled} & set(answers)
        answers |= {p.request_id: p.rows for p in pooled}
    return answers

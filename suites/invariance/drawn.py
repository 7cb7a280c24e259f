"""`batch_invariant` on drawn requests: every chunk size, alone and in company, to the bit.

A case is one drawn request. It is run in every chunk size, by itself and mixed with others, and
once more behind its own cached prefix; each answer is compared, as integers, with that of the
request alone and whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import torch

from engine.config import CacheConfig, EngineConfig, ExecutionConfig, SchedulerConfig
from engine.engine import Engine
from engine.models.config import read_model_config
from engine.plan import PlanEntry, StepPlan
from engine.request import PoolingOutput, PoolingParams, PoolingRequest, Task
from engine.resources import Resources

CHUNKS: Final = (1, 7, 16, 64, None)
"""Tokens of a step, at most; None: every prompt whole."""
COMPANY: Final = {"alone": 1, "mixed": 6}
"""Requests that may share a step."""
MAX_LENGTH: Final = 130
EDGES: Final = (1, 2, 6, 7, 8, 14, 15, 16, 17, 21, 32, 33)
LONG: Final = (63, 64, 65, 97, 128, 129, 130)
"""Around multiples of the larger chunk, and of a tile; a tenth of the cases."""
_TASKS: Final = (Task.EMBED, Task.EMBED, Task.TOKEN_EMBED, Task.CLASSIFY, Task.TOKEN_CLASSIFY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a group of cases is carried out."""

    mode: str
    dtype: str
    pooling: str

    def __str__(self) -> str:
        return f"{self.mode}, {self.dtype}, {self.pooling}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What one group came to."""

    cases: int
    compared: int
    """Answers compared with that of the same request alone and whole."""
    chunked: int
    """Those of them whose prompt really was cut."""
    shared: int
    """Steps that really held several requests."""
    hits: int
    """Answers that really began behind a cached prefix."""
    differing: tuple[str, ...]
    """`request chunk company` of each answer with other bits."""


def draw(count: int, *, vocabulary: int, seed: int) -> list[PoolingRequest]:
    """Requests of all tasks, their lengths around the edges of chunks."""
    rng = random.Random(seed)
    found = []
    for index in range(count):
        length = rng.choice(LONG if rng.random() < 0.1 else EDGES)
        task = rng.choice(_TASKS)
        found.append(
            PoolingRequest(
                request_id=str(index),
                token_ids=tuple(rng.randrange(vocabulary) for _ in range(length)),
                task=task,
                params=PoolingParams(normalize=False if task is Task.TOKEN_EMBED else None),
            )
        )
    return found


def run(model: Path, setting: Setting, *, cases: int, seed: int, device: str) -> Count:
    """One group, over one set of weights and one compiled block."""
    requests = draw(cases, vocabulary=read_model_config(model).vocab_size, seed=seed)
    base = _config(model, setting, device)
    resources = Resources(base)
    expected: dict[str, PoolingOutput] = {}
    compared = chunked = shared = 0
    differing: list[str] = []
    for chunk, company in _ways():
        plan = plan_of(requests, chunk or MAX_LENGTH, COMPANY[company])
        with Engine(base, resources=resources) as engine:
            result = engine.run(requests, plan=plan)
        if not expected:
            expected = dict(result.outputs)
            continue
        compared += len(result.outputs)
        chunked += sum(pieces > 1 for pieces in result.witness.chunks.values())
        shared += sum(len(step.entries) > 1 for step in result.plan)
        for name, output in result.outputs.items():
            if not same_bits(output.values, expected[name].values):
                differing.append(f"{name} {chunk or 'whole'} {company}")
    hits = 0
    if setting.pooling == "LAST":
        again = [replace(r, request_id=f"{r.request_id} again") for r in requests]
        cache = replace(base.cache, prefix_cache=True, num_blocks=cases * -(-MAX_LENGTH // 16))
        scheduler = replace(base.scheduler, max_num_batched_tokens=64, max_num_seqs=1)
        with Engine(replace(base, cache=cache, scheduler=scheduler), resources=resources) as engine:
            result = engine.run([*requests, *again])
        begins = {e.request_id: e.start for step in reversed(result.plan) for e in step.entries}
        hits = sum(begins[r.request_id] > 0 for r in again)
        compared += len(again)
        for request, copy in zip(requests, again, strict=True):
            found = result.outputs[copy.request_id].values
            if not same_bits(found, expected[request.request_id].values):
                differing.append(f"{copy.request_id} after {begins[copy.request_id]} cached")
    return Count(
        cases=cases,
        compared=compared,
        chunked=chunked,
        shared=shared,
        hits=hits,
        differing=tuple(differing),
    )


def plan_of(requests: Sequence[PoolingRequest], chunk: int, company: int) -> list[StepPlan]:
    """Steps of up to `company` requests, each with its next `chunk` tokens or what is left."""
    waiting = list(reversed(requests))
    running: list[tuple[PoolingRequest, int]] = []
    steps: list[StepPlan] = []
    while waiting or running:
        while waiting and len(running) < company:
            running.append((waiting.pop(), 0))
        entries = tuple(
            PlanEntry(
                request_id=request.request_id,
                start=done,
                count=min(chunk, request.num_tokens - done),
                total=request.num_tokens,
            )
            for request, done in running
        )
        steps.append(StepPlan(index=len(steps), entries=entries))
        running = [
            (request, entry.end)
            for (request, _), entry in zip(running, entries, strict=True)
            if not entry.finishes
        ]
    return steps


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are the same to the bit: NaN equals itself, 0.0 is not -0.0."""
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    kind = kinds[a.element_size()]
    return (a.dtype, a.shape) == (b.dtype, b.shape) and torch.equal(a.view(kind), b.view(kind))


def _ways() -> Iterator[tuple[int | None, str]]:
    """Chunk and company; alone and whole first."""
    yield None, "alone"
    for chunk in CHUNKS:
        for company in COMPANY:
            if (chunk, company) != (None, "alone"):
                yield chunk, company


def _config(model: Path, setting: Setting, device: str) -> EngineConfig:
    backend = ("sdpa", "torch") if device == "cpu" else ("triton", "triton")
    return EngineConfig(
        model=model,
        pooling=setting.pooling,
        max_model_len=MAX_LENGTH,
        cache=CacheConfig(block_size=16),
        scheduler=SchedulerConfig(
            max_num_batched_tokens=max(COMPANY.values()) * MAX_LENGTH,
            max_num_seqs=max(COMPANY.values()),
            async_scheduling=device != "cpu",
        ),
        execution=ExecutionConfig(
            mode=setting.mode,
            dtype=setting.dtype,
            attention=backend[0],
            kernels=backend[1],
            batch_invariant=True,
        ),
        device=device,
    )


def rows(counts: Sequence[tuple[Setting, Count]]) -> list[tuple[str, int, int, int, int, int, int]]:
    """For a printed table."""
    return [
        (str(s), c.cases, c.compared, c.chunked, c.shared, c.hits, len(c.differing))
        for s, c in counts
    ]


HEADINGS: Final = (
    "setting",
    "cases",
    "compared",
    "cut",
    "shared steps",
    "prefix hits",
    "other bits",
)

"""`batch_invariant` on drawn requests: every chunk size, alone and in company, to the bit.

A case is one drawn request. It is run in every chunk size, by itself and mixed with others, and
each answer is compared, as integers, with that of the request alone and whole.
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
from engine.request import PoolingOutput, PoolingParams, PoolingRequest, Task
from engine.resources import Resources

CHUNKS: Final = (1, 7, 16, 64, None)
"""Tokens of a step, at most; None: every prompt whole."""
COMPANY: Final = {"alone": 1, "mixed": 6}
"""Requests that may share a step."""
MAX_LENGTH: Final = 130
EDGES: Final = (1, 2, 6, 7, 8, 14, 15, 16, 17, 21, 32, 33, 48, 49)
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
        scheduler = SchedulerConfig(
            max_num_batched_tokens=chunk or 4 * MAX_LENGTH,
            max_num_seqs=COMPANY[company],
            chunked_prefill=chunk is not None,
            async_scheduling=device != "cpu",
        )
        with Engine(replace(base, scheduler=scheduler), resources=resources) as engine:
            result = engine.run(requests)
        assert not result.refused, result.refused
        if not expected:
            expected = dict(result.outputs)
            continue
        compared += cases
        chunked += sum(pieces > 1 for pieces in result.witness.chunks.values())
        shared += sum(len(step.entries) > 1 for step in result.plan)
        for name, output in result.outputs.items():
            if not same_bits(output.values, expected[name].values):
                differing.append(f"{name} {chunk or 'whole'} {company}")
    return Count(
        cases=cases,
        compared=compared,
        chunked=chunked,
        shared=shared,
        differing=tuple(differing),
    )


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
        execution=ExecutionConfig(
            mode=setting.mode,
            dtype=setting.dtype,
            attention=backend[0],
            kernels=backend[1],
            batch_invariant=True,
        ),
        device=device,
    )


def rows(counts: Sequence[tuple[Setting, Count]]) -> list[tuple[str, int, int, int, int, int]]:
    """For a printed table."""
    return [(str(s), c.cases, c.compared, c.chunked, c.shared, len(c.differing)) for s, c in counts]


HEADINGS: Final = ("setting", "cases", "compared", "cut", "shared steps", "other bits")

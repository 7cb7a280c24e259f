"""Engines with little memory, with a prefix cache, and prompts that make both matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.config import (
    CacheConfig,
    EngineConfig,
    ExecutionConfig,
    ParallelConfig,
    SchedulerConfig,
    StreamPolicy,
)
from engine.engine import Engine
from engine.request import PoolingRequest, Task
from engine.resources import Resources

CHUNK, LIMIT = 16, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How an engine's memory is laid out and used; the defaults are ample and without a cache."""

    num_blocks: int | None = None
    block_size: int = 16
    prefix_cache: bool = False
    asynchronous: bool = False
    stages: int = 1
    policy: str = "lag(copy@last)"
    inputs: str = "fenced"
    batch_invariant: bool = False
    poison: bool = False
    plugins: tuple[str, ...] = ()
    threshold: int = CHUNK // 2
    max_num_seqs: int = 4


class Engines:
    """Owns: the weights that all its engines share."""

    def __init__(self, model: Path, *, batch_invariant: bool = False) -> None:
        self._model, self._batch_invariant = model, batch_invariant
        self.resources = Resources(self.config(Memory()))

    def config(self, memory: Memory) -> EngineConfig:
        return EngineConfig(
            model=self._model,
            max_model_len=LIMIT,
            scheduler=SchedulerConfig(
                max_num_batched_tokens=CHUNK,
                max_num_seqs=memory.max_num_seqs,
                chunked_prefill=True,
                long_prefill_token_threshold=memory.threshold,
                async_scheduling=memory.asynchronous,
            ),
            cache=CacheConfig(
                block_size=memory.block_size,
                num_blocks=memory.num_blocks,
                prefix_cache=memory.prefix_cache,
            ),
            execution=ExecutionConfig(batch_invariant=self._batch_invariant),
            parallel=ParallelConfig(pipeline_parallel_size=memory.stages),
            stream=StreamPolicy.parse(memory.policy),
            inputs=memory.inputs,
            poison=memory.poison,
            plugins=memory.plugins,
        )

    @contextmanager
    def open(self, memory: Memory) -> Iterator[Engine]:
        with Engine(self.config(memory), resources=self.resources) as engine:
            yield engine


def prompt(length: int, seed: int, *, shared: int = 0) -> tuple[int, ...]:
    """Token ids; two prompts of different seeds agree in the first `shared` tokens only."""
    return tuple(
        (31 * (0 if j < shared else seed + 1) + 7 * j + j * j) % 250 for j in range(length)
    )


def requests(
    lengths: Sequence[int], *, shared: int = 0, tasks: Sequence[Task] = (Task.EMBED,)
) -> tuple[PoolingRequest, ...]:
    return tuple(
        PoolingRequest(
            request_id=f"r{i}",
            token_ids=prompt(length, i, shared=shared),
            task=tasks[i % len(tasks)],
        )
        for i, length in enumerate(lengths)
    )

"""Embedding throughput on a GPU, of Qwen3-0.6B's shape in bfloat16, against its products alone.

The ceiling is what the layers' own matrix products reach by themselves in the same run; beside it
stands one square product, the most that the device was seen to do. Operations are counted as two
for each multiply-add: all weights of the layers, and half of the square of the prompt for causal
attention.

    PYTHONPATH=. python3 -m pytest suites/bench/test_gpu_throughput.py -m bench -s

Passes wrongly if more operations were counted than the shape has, or tokens that did not run. Ruled
out by `test_operations_are_what_torch_counts` and `test_throughput`, which counts the tokens of
every timed run in its plan.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from engine.config import (
    EXECUTION_MODES,
    CacheConfig,
    EngineConfig,
    ExecutionConfig,
    SchedulerConfig,
)
from engine.engine import Engine
from engine.request import PoolingParams, PoolingRequest, Task
from engine.resources import Resources
from engine.runner import Runner
from suites.bench.shape import QWEN3_0_6B, write
from suites.figures import show

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="measures a GPU"),
]

LAYERS, HIDDEN, INNER, QUERIES, KEYS = 28, 1024, 3072, 2048, 1024
PRODUCTS = ((QUERIES + 2 * KEYS, HIDDEN), (HIDDEN, QUERIES), (2 * INNER, HIDDEN), (HIDDEN, INNER))
"""(N, K) of a layer's products."""
WEIGHTS = LAYERS * sum(n * k for n, k in PRODUCTS)
BUDGET = 32768
"""Tokens of a step."""
LOADS = {512: 512, 8192: 32}
"""Prompt length -> prompts of a run: eight steps."""
REPEATS = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("shape"), QWEN3_0_6B)


def config(model: Path) -> EngineConfig:
    return EngineConfig(
        model=model,
        device="cuda",
        max_model_len=8192,
        cache=CacheConfig(num_blocks=3 * BUDGET // 16 + 1024),
        execution=ExecutionConfig(attention="triton", dtype="bfloat16"),
        scheduler=SchedulerConfig(
            max_num_batched_tokens=BUDGET, max_num_seqs=BUDGET // 512, async_scheduling=True
        ),
    )


def own_all_rows(runner: Runner) -> Callable[[], None]:
    """A plug-in: token rows are copied whether or not they need be."""
    assert runner.pooler is not None
    part = runner.pooler.all
    part.own = lambda rows, **_: rows.clone()  # type: ignore[method-assign]
    return lambda: part.__dict__.pop("own", None)


def prompts(length: int, count: int, task: Task = Task.EMBED) -> list[PoolingRequest]:
    draw = random.Random(length)
    return [
        PoolingRequest(
            request_id=str(index),
            token_ids=tuple(draw.randrange(150_000) for _ in range(length)),
            task=task,
            params=PoolingParams(normalize=False if task is Task.TOKEN_EMBED else None),
        )
        for index in range(count)
    ]


def operations(length: int, count: int) -> float:
    """Of `count` causal prompts: products, and attention over half of the square."""
    attention = LAYERS * 4 * QUERIES * length * length / 2
    return count * (2 * WEIGHTS * length + attention)


def seconds(engine: Engine, requests: Sequence[PoolingRequest]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    result = engine.run(requests)
    spent = time.perf_counter() - began
    assert sum(step.num_tokens for step in result.plan) == sum(r.num_tokens for r in requests)
    assert len(result.outputs) == len(requests)
    return spent


def ceiling(rows: int = BUDGET) -> float:
    """Operations a second of a layer's products, one after another, as a layer has them."""
    operands = [
        (
            torch.randn(rows, k, device="cuda", dtype=torch.bfloat16),
            torch.randn(n, k, device="cuda", dtype=torch.bfloat16),
        )
        for n, k in PRODUCTS
    ]
    times = []
    for repeat in range(8):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        start.record()
        for _ in range(10):
            for x, weight in operands:
                F.linear(x, weight)
        end.record()
        torch.cuda.synchronize()
        if repeat > 2:
            times.append(start.elapsed_time(end) / 1e4)
    return 2 * rows * sum(n * k for n, k in PRODUCTS) / median(times)


def square(size: int = 8192) -> float:
    """Operations a second of one square product: what the device can reach."""
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in "ab")
    times = []
    for repeat in range(8):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        start.record()
        for _ in range(10):
            F.linear(a, b)
        end.record()
        torch.cuda.synchronize()
        if repeat > 2:
            times.append(start.elapsed_time(end) / 1e4)
    return 2 * size**3 / median(times)


def test_operations_are_what_torch_counts() -> None:
    """Nothing is computed: a layer's products of a prompt, and attention over its whole square."""
    length = max(LOADS)
    with FlopCounterMode(display=False) as counter:
        for n, k in PRODUCTS:
            F.linear(torch.empty(length, k, device="meta"), torch.empty(n, k, device="meta"))
        heads = (torch.empty(1, 16, length, 128, device="meta") for _ in "qkv")
        F.scaled_dot_product_attention(*heads)
    whole = 4 * QUERIES * length * length
    assert operations(length, 3) == 3 * LAYERS * (counter.get_total_flops() - whole / 2)


def test_throughput(model: Path) -> None:
    base = config(model)
    resources, table = Resources(base), []
    top, most = ceiling(), square()
    for mode in EXECUTION_MODES:
        for length, count in LOADS.items():
            requests = prompts(length, count)
            buckets = (BUDGET,) if mode == "graph" else None
            execution = replace(base.execution, mode=mode, graph_buckets=buckets)
            with Engine(replace(base, execution=execution), resources=resources) as engine:
                engine.run(requests[: count // 4])  # compiles, and fills caches
                taken = median(seconds(engine, requests) for _ in range(REPEATS))
            rate = operations(length, count) / taken
            table.append(
                (
                    mode,
                    length,
                    f"{count * length / taken:,.0f}",
                    rate / 1e12,
                    f"{rate / top:.1%}",
                    f"{rate / most:.1%}",
                )
            )
    show(
        f"embeddings, Qwen3-0.6B's shape in bfloat16 on {torch.cuda.get_device_name()}; the "
        f"layers' products alone: {top / 1e12:.0f} TFLOP/s, one of 8,192: {most / 1e12:.0f}",
        ("mode", "tokens", "tokens/s", "TFLOP/s", "of the products alone", "of the square"),
        table,
    )


def test_fenced_against_ring_inputs(model: Path) -> None:
    base, table = config(model), []
    resources = Resources(base)
    compiled = replace(base, execution=replace(base.execution, mode="compiled"))
    for length, count, budget in ((512, 512, BUDGET), (64, 1024, 1024)):
        requests = prompts(length, count)
        scheduler = replace(base.scheduler, max_num_batched_tokens=budget)
        ways = {
            inputs: replace(compiled, inputs=inputs, scheduler=scheduler)
            for inputs in ("fenced", "ring")
        }
        engines = {i: Engine(way, resources=resources) for i, way in ways.items()}
        try:
            for engine in engines.values():
                engine.run(requests[: count // 4])
            taken = [{i: seconds(e, requests) for i, e in engines.items()} for _ in range(5)]
        finally:
            for engine in engines.values():
                engine.close()
        rates = {i: length * count / median(t[i] for t in taken) for i in engines}
        ratio = median(t["fenced"] / t["ring"] for t in taken)
        table.append((length, budget, f"{rates['fenced']:,.0f}", f"{rates['ring']:,.0f}", ratio))
    show(
        "inputs, compiled: tokens/s, and ring's over fenced's, median of 5 in turns",
        ("tokens", "budget", "fenced", "ring", "ring / fenced"),
        table,
    )


def test_memory_of_token_rows(model: Path) -> None:
    """Steps that do not overlap borrow the rows of whole prompts; a plug-in copies them."""
    base, table = config(model), []
    requests = prompts(8192, 8, Task.TOKEN_EMBED)
    sync = replace(base, scheduler=replace(base.scheduler, async_scheduling=False))
    ways = {
        "borrowed, sync": sync,
        "owned, sync": replace(sync, plugins=(f"{__name__}:own_all_rows",)),
        "owned, async": base,
    }
    resources = Resources(base)
    for name, way in ways.items():
        with Engine(way, resources=resources) as engine:
            engine.run(requests[:4])
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            engine.run(requests)
            peak = torch.cuda.max_memory_allocated() - before
        table.append((name, peak / 2**20))
    show(
        "token rows of 8 prompts of 8,192 tokens: peak memory above weights and buffers",
        ("rows", "MiB", "of borrowed"),
        [(name, mib, mib / table[0][1]) for name, mib in table],
    )

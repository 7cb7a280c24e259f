"""Each pooling method against its definition, whole and in chunks.

Passes wrongly if prompts came in one chunk only. Ruled out by suites/meta/test_suites_can_fail.py:
`a-mean-over-the-last-chunk`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LedgerError
from engine.pooling.base import PoolingBatch
from engine.pooling.dispatcher import Pooler
from engine.pooling.mean import TILE, MeanPooling
from engine.pooling.retention import ChunkStore
from engine.request import Task
from suites.unit.pooling.packing import Prompts, in_chunks, pool_all, pooler_of

DIM = 5


def pooler(method: str, *, overlaps_steps: bool = True) -> Pooler:
    """Identity head, so that rows come out as the method made them."""
    sequence = "LAST" if method == "ALL" else method
    return pooler_of(*sequence.split("+"), dim=DIM, overlaps_steps=overlaps_steps)


def cut(length: int, size: int) -> list[int]:
    edges = [*range(0, length, size), length]
    return [b - a for a, b in pairwise(edges)]


def reference(method: str, hidden: torch.Tensor) -> torch.Tensor:
    return {"LAST": hidden[-1], "CLS": hidden[0], "MEAN": tiled_mean(hidden), "ALL": hidden}[method]


def tiled_mean(hidden: torch.Tensor) -> torch.Tensor:
    """The documented order, one float32 addition at a time."""
    rows = [row.numpy() for row in hidden.float()]
    total = np.zeros(hidden.shape[1], np.float32)
    for begin in range(0, len(rows), TILE):
        tile = rows[begin : begin + TILE]
        tile += [np.zeros_like(total)] * (TILE - len(tile))
        while len(tile) > 1:
            half = len(tile) // 2
            tile = [a + b for a, b in zip(tile[:half], tile[half:], strict=True)]
        total = total + tile[0]
    return torch.from_numpy(total / np.float32(len(rows)))


@pytest.mark.parametrize("method", ["LAST", "CLS", "MEAN", "ALL"])
@given(
    length=st.one_of(
        st.integers(min_value=1, max_value=3 * TILE),
        st.sampled_from([1, TILE - 1, TILE, TILE + 1, 2 * TILE]),
    ),
    data=st.data(),
)
def test_chunks_change_no_bit(method: str, length: int, data: st.DataObject) -> None:
    edges = data.draw(st.sets(st.integers(min_value=1, max_value=max(1, length - 1)), max_size=5))
    counts = [b - a for a, b in pairwise(sorted({0, length} | {e for e in edges if e < length}))]
    prompts = Prompts(DIM)
    task = Task.TOKEN_EMBED if method == "ALL" else Task.EMBED
    hidden = prompts.add("a", length, task)
    p = pooler("LAST" if method == "ALL" else method)
    answers = pool_all(p, prompts, in_chunks("a", counts))
    assert torch.equal(answers["a"], reference(method, hidden))
    assert p.num_retained == 0


@pytest.mark.parametrize("size", [1, 7, 64, 200])
def test_mean_of_half_precision_is_summed_in_float32(size: int) -> None:
    prompts = Prompts(DIM, dtype=torch.bfloat16)
    hidden = prompts.add("a", 200, Task.EMBED)
    got = pool_all(pooler("MEAN"), prompts, in_chunks("a", cut(200, size)))["a"]
    assert got.dtype == torch.float32
    assert torch.equal(got, tiled_mean(hidden))


def test_mean_is_near_the_float64_mean() -> None:
    """Bound: as many roundings as one value goes through, each at most eps/2 of the sum of |x|."""
    prompts = Prompts(DIM)
    hidden = prompts.add("a", 1000, Task.EMBED)
    got = pool_all(pooler("MEAN"), prompts, in_chunks("a", [1000]))["a"].double()
    additions = int(np.log2(TILE)) + -(-1000 // TILE) + 1
    bound = additions * torch.finfo(torch.float32).eps / 2 * hidden.double().abs().mean(0)
    assert ((got - hidden.double().mean(0)).abs() <= bound).all()


def test_mean_of_float64_stays_float64() -> None:
    prompts = Prompts(DIM, dtype=torch.float64)
    prompts.add("a", 70, Task.EMBED)
    assert pool_all(pooler("MEAN"), prompts, in_chunks("a", [30, 40]))["a"].dtype == torch.float64


def test_mean_retains_less_than_a_tile_whatever_the_length() -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 10 * TILE, Task.EMBED)
    store = ChunkStore()
    mean = MeanPooling(store)
    for index, pieces in enumerate(in_chunks("a", cut(10 * TILE, 150)[:-1])):
        hidden, batch = prompts.pack(prompts.step(index, pieces))
        assert mean(hidden, batch, [0]) == {}
        retained = store.take("a")
        # Storage, not shape: a retained view would keep its whole base alive.
        held = sum(t.untyped_storage().nbytes() for t in retained)
        assert held <= TILE * DIM * hidden.element_size()
        for rows in retained:
            store.append("a", rows)


@pytest.mark.parametrize(("method", "row"), [("LAST", 4), ("CLS", 3)])
def test_sequence_rows_come_from_the_device_offsets(method: str, row: int) -> None:
    """The device's view of the batch decides, even where it disagrees with the host's."""
    prompts = Prompts(DIM)
    prompts.add("a", 3, Task.EMBED)
    prompts.add("b", 3, Task.EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 3), ("b", 0, 3)]))
    stale = PoolingBatch(entries=batch.entries, row_offsets=torch.tensor([1, 3, 5]))
    pooled = pooler(method).pool(hidden, stale)
    assert torch.equal(pooled[1].rows, hidden[row])


@pytest.mark.parametrize("method", ["LAST", "CLS"])
def test_offsets_outside_the_batch_are_clamped(method: str) -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 3, Task.EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 3)]))
    wild = PoolingBatch(entries=batch.entries, row_offsets=torch.tensor([99, -5]))
    expected = hidden[{"LAST": 0, "CLS": 2}[method]]
    assert torch.equal(pooler(method).pool(hidden, wild)[0].rows, expected)


def test_all_splits_by_what_the_host_knows() -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 2, Task.TOKEN_EMBED)
    prompts.add("b", 3, Task.TOKEN_EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 2), ("b", 0, 3)]))
    wild = PoolingBatch(entries=batch.entries, row_offsets=torch.zeros(3, dtype=torch.int64))
    pooled = pooler("LAST").pool(hidden, wild)
    assert [p.request_id for p in pooled] == ["a", "b"]
    assert torch.equal(pooled[0].rows, prompts.hidden["a"])
    assert torch.equal(pooled[1].rows, prompts.hidden["b"])


@pytest.mark.parametrize("task", [Task.EMBED, Task.TOKEN_EMBED])
@pytest.mark.parametrize("start", [0, 2])
def test_a_chunk_that_does_not_follow_what_is_retained_is_our_bug(task: Task, start: int) -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 6, task)
    p = pooler("CLS")
    if start == 0:
        pool_all(p, prompts, [[("a", 0, 2)]])
    with pytest.raises(LedgerError, match=r"'a': expected (some|no) retained rows"):
        pool_all(p, prompts, [[("a", start, 2)]])


def test_a_lost_chunk_is_noticed() -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 6, Task.TOKEN_EMBED)
    with pytest.raises(LedgerError, match=r"'a': expected 6 token rows, got \[2, 2\]"):
        pool_all(pooler("CLS"), prompts, [[("a", 0, 2)], [("a", 4, 2)]])

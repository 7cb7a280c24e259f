"""Who owns what leaves a step, told by where it is stored.

Passes wrongly if where a tensor is stored were not looked at. Ruled out by
suites/meta/test_suites_can_fail.py: `rows-are-never-copied`.
"""

from __future__ import annotations

import pytest
import torch

from engine.pooling.all import AllPooling
from engine.pooling.dispatcher import Pooler
from engine.pooling.retention import ChunkStore
from engine.request import Task
from suites.unit.pooling.packing import Prompts, pooler_of

DIM = 4


def identity_pooler(*, overlaps_steps: bool, method: str = "LAST") -> Pooler:
    """A head that computes nothing: any other would copy, and hide who owns the rows."""
    return pooler_of(*method.split("+"), dim=DIM, overlaps_steps=overlaps_steps)


def storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    ("finishes", "retained", "overlaps_steps", "copied"),
    [
        # Finished in one chunk, as every prompt of an unchunked engine: copied iff steps overlap.
        (True, 0, False, False),
        (True, 0, True, True),
        # Finished after earlier chunks: joining them copies.
        (True, 1, False, False),
        (True, 1, True, False),
        (True, 2, True, False),
        # Unfinished: always copied.
        (False, 0, False, True),
        (False, 0, True, True),
        (False, 1, False, True),
        (False, 1, True, True),
    ],
)
def test_ownership_table(
    *, finishes: bool, retained: int, overlaps_steps: bool, copied: bool
) -> None:
    rows = torch.randn(6, DIM)[2:5]
    pooling = AllPooling(ChunkStore(), overlaps_steps=overlaps_steps)
    owned = pooling.own(rows, finishes=finishes, retained=retained, overlaps_steps=overlaps_steps)
    assert torch.equal(owned, rows)
    assert (owned.data_ptr() != rows.data_ptr()) is copied


@pytest.mark.parametrize("overlaps_steps", [False, True])
def test_a_whole_prompt_is_borrowed_unless_steps_overlap(*, overlaps_steps: bool) -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 2, Task.TOKEN_EMBED)
    prompts.add("b", 3, Task.TOKEN_EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 2), ("b", 0, 3)]))
    pooled = identity_pooler(overlaps_steps=overlaps_steps).pool(hidden, batch)
    assert [storage(p.rows) == storage(hidden) for p in pooled] == [not overlaps_steps] * 2
    assert (pooled[1].rows.data_ptr() == hidden[2].data_ptr()) is not overlaps_steps


@pytest.mark.parametrize("overlaps_steps", [False, True])
def test_chunks_are_owned_from_the_step_they_ran_in(*, overlaps_steps: bool) -> None:
    """Each step overwrites the last one's hidden states, in the same buffer."""
    prompts = Prompts(DIM)
    expected = prompts.add("a", 6, Task.TOKEN_EMBED)
    pooler = identity_pooler(overlaps_steps=overlaps_steps)
    buffer = torch.full((3, DIM), torch.nan)
    pooled = []
    for index, (start, count) in enumerate([(0, 3), (3, 2), (5, 1)]):
        hidden, batch = prompts.pack(prompts.step(index, [("a", start, count)]))
        buffer[:count] = hidden
        pooled += pooler.pool(buffer[:count], batch)
        assert len(pooled) == (index == 2), "an unfinished request has no output"
    buffer.fill_(torch.nan)
    assert torch.equal(pooled[0].rows, expected)
    assert storage(pooled[0].rows) != storage(buffer)


@pytest.mark.parametrize(
    "method", ["LAST", "CLS", "MEAN", "MAX", "WEIGHTED_MEAN", "LAST+MEAN_SQRT"]
)
@pytest.mark.parametrize("overlaps_steps", [False, True])
def test_sequence_rows_are_always_owned(method: str, *, overlaps_steps: bool) -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 1, Task.EMBED)
    prompts.add("b", 3, Task.EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 1), ("b", 0, 3)]))
    pooler = identity_pooler(overlaps_steps=overlaps_steps, method=method)
    pooled = pooler.pool(hidden, batch)
    assert len(pooled) == 2
    assert storage(hidden) not in [storage(p.rows) for p in pooled]


@pytest.mark.parametrize("method", ["CLS", "MEAN", "MAX", "WEIGHTED_MEAN", "CLS+MEAN_SQRT"])
def test_what_sequence_methods_retain_is_owned(method: str) -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 3, Task.EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 2)]))
    pooler = identity_pooler(overlaps_steps=False, method=method)
    assert pooler.pool(hidden, batch) == []
    retained = [rows for store in pooler.stores for rows in store.take("a")]
    assert retained
    assert storage(hidden) not in [storage(t) for t in retained]


def test_own_is_a_seam_on_the_instance() -> None:
    prompts = Prompts(DIM)
    prompts.add("a", 2, Task.TOKEN_EMBED)
    hidden, batch = prompts.pack(prompts.step(0, [("a", 0, 2)]))
    pooler = identity_pooler(overlaps_steps=True)
    assert storage(pooler.pool(hidden, batch)[0].rows) != storage(hidden)

    def borrow(rows: torch.Tensor, **_: object) -> torch.Tensor:
        return rows

    pooler.all.own = borrow  # type: ignore[method-assign]
    assert storage(pooler.pool(hidden, batch)[0].rows) == storage(hidden)

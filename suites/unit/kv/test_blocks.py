"""The block pool: every block has one owner, and the ledger notices when it has not."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LedgerError
from engine.kv.blocks import BlockPool


@pytest.fixture
def pool() -> BlockPool:
    return BlockPool(num_blocks=4, block_size=16)


def test_lowest_free_blocks_come_first(pool: BlockPool) -> None:
    assert pool.allocate("a", 2) == (0, 1)
    assert pool.allocate("b", 1) == (2,)
    pool.release("a")
    assert pool.allocate("c", 3) == (0, 1, 3)
    assert pool.table("c") == (0, 1, 3)
    assert pool.holders == {"b", "c"}


@pytest.mark.parametrize(("num_tokens", "blocks"), [(1, 1), (15, 1), (16, 1), (17, 2), (64, 4)])
def test_blocks_for_rounds_up(pool: BlockPool, num_tokens: int, blocks: int) -> None:
    assert pool.blocks_for(num_tokens) == blocks


def test_can_allocate_is_exact_at_the_edge(pool: BlockPool) -> None:
    pool.allocate("a", 1)
    assert pool.can_allocate(3)
    assert not pool.can_allocate(4)


def test_allocating_more_than_is_free_is_refused_and_changes_nothing(pool: BlockPool) -> None:
    pool.allocate("a", 3)
    with pytest.raises(LedgerError, match=r"'b'.*n=2.*1 free of 4"):
        pool.allocate("b", 2)
    assert pool.num_free == 1
    pool.check_integrity()


def test_a_holder_cannot_allocate_again(pool: BlockPool) -> None:
    pool.allocate("a", 1)
    with pytest.raises(LedgerError, match=r"'a' already holds blocks \(0,\)"):
        pool.allocate("a", 1)


def test_nobody_can_release_what_it_does_not_hold(pool: BlockPool) -> None:
    pool.allocate("a", 1)
    pool.release("a")
    with pytest.raises(LedgerError, match="'a' holds no blocks"):
        pool.release("a")
    with pytest.raises(LedgerError, match="'a' holds no blocks"):
        pool.table("a")


@pytest.mark.parametrize("corruption", ["lost", "twice"])
def test_integrity_prints_both_sides(pool: BlockPool, corruption: str) -> None:
    pool.allocate("a", 2)
    pool.check_integrity()
    if corruption == "lost":
        pool._free.pop()
    else:
        pool._free[0] = pool.table("a")[0]
    with pytest.raises(LedgerError, match=r"free=\[.*\] \+ held=\{'a': \(0, 1\)\}.*\[0, 4\)"):
        pool.check_integrity()


@given(
    actions=st.lists(
        st.tuples(st.sampled_from("abcde"), st.integers(min_value=1, max_value=4)), max_size=30
    )
)
def test_no_block_is_ever_held_twice(actions: list[tuple[str, int]]) -> None:
    pool = BlockPool(num_blocks=7, block_size=1)
    for name, n in actions:
        if name in pool.holders:
            pool.release(name)
        elif pool.can_allocate(n):
            assert len(pool.allocate(name, n)) == n
        held = list(chain.from_iterable(pool.table(h) for h in pool.holders))
        assert len(held) == len(set(held)) == 7 - pool.num_free
        pool.check_integrity()

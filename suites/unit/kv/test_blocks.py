"""The block pool: free or held, published or not, pinned or not, and the ledger notices.

Passes wrongly if the pool's own check saw nothing, or the drawn calls never held a block. Ruled out
by suites/meta/test_suites_can_fail.py: `ledger-never-complains`, `freed-blocks-are-lost`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LedgerError
from engine.kv.blocks import BlockPool


@pytest.fixture
def pool() -> BlockPool:
    return BlockPool(num_blocks=4, block_size=16)


def give(pool: BlockPool, request_id: str, n: int) -> tuple[int, ...]:
    pool.extend(request_id, n)
    return pool.table(request_id)


def test_blank_blocks_go_out_in_the_order_in_which_they_became_free(pool: BlockPool) -> None:
    assert give(pool, "a", 2) == (0, 1)
    assert give(pool, "b", 1) == (2,)
    pool.release("a")
    assert pool.next_free(3) == (3, 1, 0)
    assert give(pool, "c", 3) == (3, 1, 0)
    assert pool.holders == {"b", "c"}


def test_a_table_grows_at_its_end(pool: BlockPool) -> None:
    give(pool, "a", 1)
    give(pool, "b", 1)
    assert give(pool, "a", 2) == (0, 2, 3)
    assert pool.num_held == 4


@pytest.mark.parametrize(("num_tokens", "blocks"), [(1, 1), (15, 1), (16, 1), (17, 2), (64, 4)])
def test_blocks_for_rounds_up(pool: BlockPool, num_tokens: int, blocks: int) -> None:
    assert pool.blocks_for(num_tokens) == blocks


def test_more_than_is_free_is_refused_and_changes_nothing(pool: BlockPool) -> None:
    give(pool, "a", 3)
    with pytest.raises(LedgerError, match=r"'b'.*n=2.*1 free of 4"):
        pool.extend("b", 2)
    assert pool.num_free == 1
    assert pool.holders == {"a"}
    pool.check_integrity()


def test_a_published_block_can_be_adopted_while_held_and_while_free(pool: BlockPool) -> None:
    give(pool, "a", 3)
    pool.publish("a", ["x", "y"])
    assert pool.cached(["x", "y", "z"]) == (0, 1)
    assert pool.cached(["y"]) == (1,)
    assert pool.cached(["z", "x"]) == ()
    pool.adopt("b", (0, 1))
    pool.release("a")
    assert (pool.num_free, pool.num_held) == (2, 2)
    pool.check_integrity()
    pool.release("b")
    pool.adopt("c", (0,))
    assert pool.table("c") == (0,)
    assert pool.num_free == 3
    pool.check_integrity()


def test_the_block_free_longest_is_evicted_first_and_blank_ones_before_it(pool: BlockPool) -> None:
    for name in ("a", "b"):
        give(pool, name, 2)
        pool.publish(name, [f"{name}0", f"{name}1"])
    pool.release("b")
    pool.release("a")
    assert pool.next_free(4) == (3, 2, 1, 0), "of each prompt, the end of its chain first"
    give(pool, "c", 1)
    assert pool.cached(["b0", "b1"]) == (2,)
    assert pool.cached(["a0", "a1"]) == (0, 1)
    assert pool.num_evictions == 1
    assert pool.next_free(2, adopted=(2,)) == (1, 0), "what is about to be adopted stays"
    assert pool.num_free_beside((2,)) == 2
    pool.check_integrity()


def test_a_prefix_stays_where_it_was_published_first(pool: BlockPool) -> None:
    give(pool, "a", 1)
    give(pool, "b", 1)
    pool.publish("a", ["x"])
    pool.publish("b", ["x"])
    assert pool.cached(["x"]) == (0,)
    pool.release("b")
    assert pool.next_free(4) == (2, 3, 1)
    pool.check_integrity()


def test_what_two_requests_share_becomes_free_with_the_second(pool: BlockPool) -> None:
    give(pool, "a", 2)
    pool.publish("a", ["x"])
    pool.adopt("b", (0,))
    assert pool.num_freed_by(["a"]) == 1
    assert pool.num_freed_by(["a", "b"]) == 2
    assert pool.num_freed_by(["a", "b"], adopted=(0,)) == 1


def test_pins_outlive_the_table(pool: BlockPool) -> None:
    blocks = give(pool, "a", 2)
    pool.pin(blocks)
    pool.pin(blocks)
    pool.release("a")
    pool.unpin(blocks)
    assert pool.is_pinned((3, 1))
    assert not pool.is_pinned((2, 3))
    pool.unpin(blocks)
    assert not pool.is_pinned(blocks)
    with pytest.raises(LedgerError, match="unpinned more often"):
        pool.unpin(blocks)


@pytest.mark.parametrize(("num_blocks", "block_size"), [(0, 16), (4, 0)])
def test_an_empty_pool_is_refused(num_blocks: int, block_size: int) -> None:
    with pytest.raises(LedgerError, match="at least 1 block of at least 1 token"):
        BlockPool(num_blocks, block_size)


@pytest.mark.parametrize("what", ["lost", "twice", "count", "keys", "blank"])
def test_the_ledger_notices(pool: BlockPool, what: str) -> None:
    give(pool, "a", 2)
    pool.publish("a", ["x"])
    pool.check_integrity()
    if what == "lost":
        pool._blank.pop()
    elif what == "twice":
        pool._blank.append(0)
    elif what == "count":
        pool._holders[0] += 1
    elif what == "keys":
        pool._block_of["y"] = 0
    else:
        pool._key_of[3], pool._block_of["y"] = "y", 3
    with pytest.raises(LedgerError, match="KV blocks"):
        pool.check_integrity()


@given(st.data())
def test_no_sequence_of_calls_unbalances_the_ledger(data: st.DataObject) -> None:
    pool = BlockPool(num_blocks=6, block_size=4)
    prompts = {"a": "xy", "b": "xyz", "c": "xq", "d": "zz"}
    for _ in range(data.draw(st.integers(1, 30))):
        name = data.draw(st.sampled_from(sorted(prompts)))
        keys = [prompts[name][: i + 1] for i in range(len(prompts[name]))]
        if name in pool.holders and data.draw(st.booleans()):
            pool.release(name)
        else:
            if name not in pool.holders:
                pool.adopt(name, pool.cached(keys))
            pool.extend(name, min(1, pool.num_free))
            pool.publish(name, keys[: len(pool.table(name))])
        pool.check_integrity()
    for name in pool.holders:
        pool.release(name)
    pool.check_integrity()
    assert pool.num_free == 6

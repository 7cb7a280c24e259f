"""The chunk store: what is put in comes out once, in order.

Passes wrongly if rows could be taken twice. Ruled out by suites/meta/test_suites_can_fail.py:
`chunks-come-out-again`.
"""

from __future__ import annotations

import pytest
import torch

from engine.errors import LedgerError
from engine.pooling.retention import ChunkStore


def test_chunks_come_out_once_oldest_first() -> None:
    store = ChunkStore()
    first, second = torch.zeros(2, 3), torch.zeros(1, 3)
    store.append("a", first)
    store.append("b", torch.zeros(5, 3))
    store.append("a", second)
    assert store.count("a") == 2
    assert store.nbytes == (2 + 5 + 1) * 3 * 4
    taken = store.take("a")
    assert taken[0] is first
    assert taken[1] is second
    assert store.take("a") == []
    assert (store.count("a"), len(store)) == (0, 1)


def test_expectations_name_the_request_and_the_count() -> None:
    store = ChunkStore()
    store.expect("a", retained=False)
    with pytest.raises(LedgerError, match=r"'a': expected some retained rows, got 0"):
        store.expect("a", retained=True)
    store.append("a", torch.zeros(1))
    store.expect("a", retained=True)
    with pytest.raises(LedgerError, match=r"'a': expected no retained rows, got 1"):
        store.expect("a", retained=False)


def test_rows_of_inactive_requests_are_reported() -> None:
    store = ChunkStore()
    store.append("a", torch.zeros(1))
    store.check_integrity({"a", "b"})
    with pytest.raises(LedgerError, match=r"\['a'\]"):
        store.check_integrity({"b"})
    store.clear("a")
    store.check_integrity(())

"""State slots: lowest free first, each held once.

Passes wrongly if the pool's own check saw nothing. Ruled out by
suites/meta/test_suites_can_fail.py: `slots-never-complain`.
"""

from __future__ import annotations

import pytest

from engine.errors import LedgerError
from engine.scheduler.slots import SlotPool


def test_lowest_free_slot_comes_first() -> None:
    slots = SlotPool(3)
    assert [slots.acquire(r) for r in "abc"] == [0, 1, 2]
    slots.release("c")
    slots.release("a")
    assert slots.acquire("d") == 0
    assert slots.slot("d") == 0
    assert slots.holders == {"b", "d"}
    assert slots.num_free == 1


def test_taking_too_much_twice_or_nothing_back_is_refused() -> None:
    slots = SlotPool(1)
    slots.acquire("a")
    with pytest.raises(LedgerError, match=r"all 1 are held by \['a'\]"):
        slots.acquire("b")
    with pytest.raises(LedgerError, match="'a' already has slot=0"):
        slots.acquire("a")
    with pytest.raises(LedgerError, match="'b' has no slot"):
        slots.release("b")


def test_integrity_prints_both_sides() -> None:
    slots = SlotPool(3)
    slots.acquire("a")
    slots.check_integrity()
    slots._free.pop()
    with pytest.raises(LedgerError, match=r"free=\[1\] \+ held=\{'a': 0\}.*\[0, 3\)"):
        slots.check_integrity()

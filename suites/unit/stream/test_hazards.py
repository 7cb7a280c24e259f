"""The vector clocks, one rule of order at a time.

Passes wrongly if the check reported nothing whatever happened, or every pair whatever orders it.
Ruled out by suites/meta/test_suites_can_fail.py: `no-hazard-is-reported`,
`an-event-orders-nothing`.
"""

from __future__ import annotations

import pytest
import torch

from engine.errors import LedgerError
from engine.stream.base import Buffer
from engine.stream.hazards import HappensBefore


class _Order:
    """Shorthand over a check with one buffer; every access is a write unless it says otherwise."""

    def __init__(self) -> None:
        self.check = HappensBefore()
        self.buffer = Buffer("b", torch.zeros(4))
        self.check.register(self.buffer)

    def op(self, stream: str, host: str = "h", *, name: str = "op", write: bool = True):  # type: ignore[no-untyped-def]
        reads, writes = ((), (self.buffer,)) if write else ((self.buffer,), ())
        return self.check.submit(stream, host=host, name=name, step=0, reads=reads, writes=writes)

    def touch(self, host: str, *, write: bool = True) -> None:
        reads, writes = ((), (self.buffer,)) if write else ((self.buffer,), ())
        self.check.host_access(host, name="touch", step=0, reads=reads, writes=writes)

    @property
    def found(self) -> int:
        return len(self.check.hazards)


def test_the_same_timeline_is_ordered() -> None:
    order = _Order()
    order.op("s")
    order.op("s")
    order.touch("g")
    order.touch("g")
    assert order.found == 1  # the stream's name pair and g's, once


def test_two_streams_are_not_ordered_by_the_host_that_submits_to_both() -> None:
    order = _Order()
    order.op("s")
    order.op("t")
    assert order.found == 1


def test_two_reads_never_conflict() -> None:
    order = _Order()
    order.op("s", write=False)
    order.op("t", write=False)
    assert order.found == 0
    order.op("u")
    assert order.found == 2


def test_an_operation_comes_after_what_its_host_did_before_and_not_after() -> None:
    order = _Order()
    order.touch("h")
    order.op("s")
    assert order.found == 0
    order.touch("h")
    assert order.found == 1


def test_a_waiting_stream_or_host_comes_after_the_event_and_no_later() -> None:
    for waiter in ("t", "h"):
        order = _Order()
        order.op("s")
        event = order.check.clock("s")
        order.check.wait(waiter, event)
        order.op("t")
        assert order.found == 0
        order.op("s", name="later")
        assert order.found == 1


def test_order_is_transitive_through_a_chain_of_events() -> None:
    order = _Order()
    order.op("s")
    order.check.wait("t", order.check.clock("s"))
    order.check.submit("t", host="h", name="link", step=0, reads=(), writes=())
    order.check.wait("u", order.check.clock("t"))
    order.op("u")
    assert order.found == 0


def test_a_message_orders_hosts_one_way() -> None:
    order = _Order()
    order.touch("g")
    order.check.join("h", "g")
    order.touch("h")
    assert order.found == 0
    order.touch("g")
    assert order.found == 1


def test_a_stream_cannot_be_joined_as_if_it_were_a_host() -> None:
    order = _Order()
    order.op("s")
    for pair in (("h", "s"), ("s", "h")):
        with pytest.raises(LedgerError, match="'s' is a stream"):
            order.check.join(*pair)
    with pytest.raises(LedgerError, match="'s' is a stream"):
        order.touch("s")


def test_a_late_read_has_the_place_of_its_submission() -> None:
    """It is compared with what came in between, before and after, by any view of the storage."""
    order = _Order()
    early = order.op("s", name="early")
    reader = order.check.submit("t", host="h", name="read", step=0, reads=(), writes=())
    order.check.wait("s", order.check.clock("t"))
    order.op("s", name="ordered after")
    order.op("u", name="unordered")
    before = order.found
    order.check.ran(reader, [order.buffer.tensor[2:], torch.zeros(1)])
    pairs = {(h.first.name, h.second.name) for h in order.check.hazards}
    assert order.found == before + 2
    assert {("early", "read"), ("read", "unordered")} <= pairs
    assert early.timeline == "s"


def test_a_late_read_does_not_hide_what_its_stream_did_after_it() -> None:
    order = _Order()
    reader = order.check.submit("t", host="h", name="read", step=0, reads=(), writes=())
    after_the_read = order.check.clock("t")
    order.op("t", name="later")
    order.check.ran(reader, [order.buffer.tensor])
    order.check.wait("s", after_the_read)
    order.op("s")
    assert [(h.first.name, h.second.name) for h in order.check.hazards] == [("later", "op")]


def test_a_pair_is_reported_once_by_its_earliest_steps() -> None:
    order = _Order()
    for step in (4, 5, 6):
        for stream in ("s", "t"):
            order.check.submit(
                stream, host="h", name="op", step=step, reads=(), writes=[order.buffer]
            )
    assert [(h.first.step, h.second.step) for h in order.check.hazards] == [(4, 4)]
    order.op("t", name="another")
    assert order.found == 2


def test_a_barrier_orders_everything() -> None:
    order = _Order()
    order.op("s")
    order.touch("g")
    order.check.barrier()
    found = order.found
    order.op("t")
    assert order.found == found
    order.touch("g")
    assert order.found == found + 1

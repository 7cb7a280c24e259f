"""Staging slots: handed out in turn, never before their last reader is done.

Passes wrongly if no load ran late enough to see its slot overwritten. Ruled out by
suites/meta/test_suites_can_fail.py: `staging-is-not-waited-for`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.buffers import Slots
from engine.config import StreamPolicy
from engine.errors import ConfigurationError, LedgerError
from engine.stream import Buffer, Device, create_device

HOST = "host@0"
POLICIES = ("threaded", "immediate", "lag(compute@first)", "paced(1)", "drawn(0,0,1,0,0,0)")


@dataclass(frozen=True, slots=True, eq=False)
class Staging:
    buffer: Buffer


def slots_on(device: Device, depth: int, kind: str) -> Slots[Staging]:
    return Slots(device, lambda i: Staging(Buffer(f"staging{i}", torch.zeros(1))), depth, kind)


@pytest.fixture
def lagging() -> Iterator[Device]:
    device = create_device("cpu", StreamPolicy.parse("lag(compute@first)"), 1)
    yield device
    device.close()


def stage(
    device: Device, slots: Slots[Staging], num_steps: int, *, fence_every: int = 1
) -> list[float]:
    """Stage step numbers, load them, and fence one step in `fence_every`."""
    compute, loaded = device.stream("compute@0"), list[float]()
    for step in range(num_steps):
        slot = slots.acquire(HOST)
        device.host_access(HOST, "stage", step=step, writes=[slot.buffer])
        slot.buffer.tensor.fill_(step)
        load = lambda slot=slot: loaded.append(slot.buffer.tensor.item())  # noqa: E731
        compute.submit("load", load, step=step, cost=3, reads=[slot.buffer])
        if step % fence_every == 0:
            slots.fence(slot, compute.record())
        device.end_step(step, HOST)
    device.drain()
    return loaded


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["fenced", "ring"])
@settings(max_examples=15, deadline=None)
@given(depth=st.integers(1, 4), num_steps=st.integers(0, 9))
def test_no_step_reads_another_steps_staging(
    policy: str, kind: str, depth: int, num_steps: int
) -> None:
    device = create_device("cpu", StreamPolicy.parse(policy), 1)
    try:
        slots = slots_on(device, depth, kind)
        assert stage(device, slots, num_steps) == list(range(num_steps))
        assert device.hazards == ()
        slots.check_integrity()
    finally:
        device.close()


@pytest.mark.parametrize(("kind", "depth", "used"), [("fenced", 3, 1), ("ring", 3, 3)])
def test_slots_are_handed_out_in_turn(lagging: Device, kind: str, depth: int, used: int) -> None:
    slots = slots_on(lagging, depth, kind)
    names = [slots.acquire(HOST).buffer.name for _ in range(2 * used)]
    assert slots.depth == used
    assert names == [f"staging{i}" for i in range(used)] * 2


def test_a_ring_waits_for_the_slots_own_reader_and_no_further(lagging: Device) -> None:
    slots, compute = slots_on(lagging, 2, "ring"), lagging.stream("compute@0")
    operations = []
    for step in range(2):
        slot = slots.acquire(HOST)
        operations.append(compute.submit("load", lambda: None, step=step, reads=[slot.buffer]))
        slots.fence(slot, compute.record())
    assert [operation.done for operation in operations] == [False, False]
    slots.acquire(HOST)
    assert [operation.done for operation in operations] == [True, False]


def test_a_missing_fence_gives_wrong_inputs_a_hazard_and_an_unbalanced_ledger(
    lagging: Device,
) -> None:
    slots = slots_on(lagging, 1, "fenced")
    assert stage(lagging, slots, 4, fence_every=2) == [0, 2, 2, 3]
    assert len(lagging.hazards) == 1
    with pytest.raises(LedgerError, match=r"handed out \[4\], fenced \[2\] times"):
        slots.check_integrity()


def test_what_is_wrong_is_named(lagging: Device) -> None:
    with pytest.raises(ConfigurationError, match=r"inputs='double'.*'fenced', 'ring'"):
        slots_on(lagging, 2, "double")
    with pytest.raises(ConfigurationError, match="depth=0"):
        slots_on(lagging, 0, "ring")
    slots = slots_on(lagging, 2, "ring")
    with pytest.raises(LedgerError, match="none of these 2 slots"):
        slots.fence(Staging(Buffer("other", torch.zeros(1))), lagging.stream("copy@0").record())

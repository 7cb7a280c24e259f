"""A device under test, and the shapes of the three classic mistakes in miniature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from engine.config import StreamPolicy
from engine.stream import Buffer, Device, Event, create_device

HOST = "host@0"
LAGS = ("lag(compute@first)", "lag(compute@last)", "lag(copy@first)", "lag(copy@last)")
COOPERATIVE = ("immediate", *LAGS, "paced(1)", "paced(3)", "drawn()", "drawn(0,2,1,0,3,0,0,1)")
POLICIES = ("threaded", *COOPERATIVE)


@contextmanager
def device(policy: str, num_ranks: int = 2) -> Iterator[Device]:
    made = create_device("cpu", StreamPolicy.parse(policy), num_ranks)
    try:
        yield made
    finally:
        made.close()


def buffer(on: Device, name: str, size: int = 1) -> Buffer:
    made = Buffer(name, torch.zeros(size))
    on.register(made)
    return made


def noting(order: list[str], what: str) -> Callable[[], None]:
    return lambda: order.append(what)


def restaging(on: Device, *, fenced: bool, num_steps: int = 4, cost: int = 4) -> list[float]:
    """S1: the host stages each step in one buffer, the device loads it, only the last step is
    fetched. Returns what the device loaded, which should be 0, 1, 2, ..."""
    staging, loaded = buffer(on, "staging"), list[float]()
    compute = on.stream("compute@0")
    fence: Event | None = None
    for step in range(num_steps):
        if fenced and fence is not None:
            fence.synchronize(HOST)
        on.host_access(HOST, "stage", step=step, writes=[staging])
        staging.tensor.fill_(step)
        load = lambda: loaded.append(staging.tensor.item())  # noqa: E731
        compute.submit("load", load, step=step, cost=cost, reads=[staging])
        fence = compute.record()
        on.end_step(step, HOST)
    on.drain()
    return loaded


def borrowing(on: Device, *, owned: bool) -> list[float]:
    """S2: each step's rows leave a hidden buffer through the copy stream; the next step writes the
    buffer again. Returns what the host got, which should be 0, 1, 2."""
    hidden, fetched = buffer(on, "hidden"), list[float]()
    compute, copy = on.stream("compute@0"), on.stream("copy@0")
    for step in range(3):
        rows: list[torch.Tensor] = []

        def run(step: int = step, rows: list[torch.Tensor] = rows) -> None:
            hidden.tensor.fill_(step)
            rows.append(hidden.tensor.clone() if owned else hidden.tensor[:1])

        compute.submit("forward", run, step=step, writes=[hidden])
        copy.wait(compute.record())
        fetch = lambda rows=rows: fetched.append(rows[0].item())  # noqa: E731
        copy.submit("fetch", fetch, step=step, reads=lambda rows=rows: rows)
        on.end_step(step, HOST)
    on.drain()
    return fetched


def sending(on: Device, *, awaited: bool) -> list[float]:
    """Stage 1 takes what stage 0 left in its buffer. Returns what stage 1 got: 0, 1, 2."""
    hidden, received = buffer(on, "hidden@0"), list[float]()
    first, last = on.stream("compute@0"), on.stream("compute@1")
    taken: Event | None = None
    for step in range(3):
        if awaited and taken is not None:
            first.wait(taken)
        run = lambda step=step: hidden.tensor.fill_(step)  # noqa: E731
        first.submit("forward", run, step=step, writes=[hidden])
        last.wait(first.record())
        receive = lambda: received.append(hidden.tensor.item())  # noqa: E731
        last.submit("receive", receive, step=step, reads=[hidden])
        taken = last.record()
        on.end_step(step, HOST)
    on.drain()
    return received

"""The same meaning on a real device: each test runs on the CPU and, where there is one, on CUDA.

Passes wrongly if what the host does to a buffer were no access, on any device. Ruled out by
suites/meta/test_suites_can_fail.py: `the-hosts-writes-are-not-seen`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.config import StreamPolicy
from engine.errors import ConfigurationError, LedgerError, WorkerError
from engine.stream import Buffer, Device, create_device
from engine.stream.cuda import CudaDevice

HOST = "host@0"
KINDS = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
# Elements; on a GPU so many that it is still busy when the host goes on.
SIZE = 1 << 22 if torch.cuda.is_available() else 1 << 8


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def on(kind: str) -> Iterator[Device]:
    device = create_device(kind, StreamPolicy(), 2)
    yield device
    device.close()


def buffer(on: Device, kind: str, name: str, *, staging: bool = False) -> Buffer:
    pinned = staging and kind == "cuda"
    tensor = torch.zeros(SIZE, pin_memory=pinned, device="cpu" if staging else kind)
    made = Buffer(name, tensor)
    on.register(made)
    return made


def test_program_order_and_waits_across_streams(on: Device, kind: str) -> None:
    value = buffer(on, kind, "value")
    a, b = on.stream("compute@0"), on.stream("copy@0")
    for step in range(4):
        a.submit("add", lambda: [value.tensor.add_(1)].clear(), step=step, writes=[value])
        b.wait(a.record())
        b.submit("double", lambda: [value.tensor.mul_(2)].clear(), step=step, writes=[value])
        a.wait(b.record())
    done = a.record()
    done.synchronize(HOST)
    assert done.done
    assert value.tensor.unique().tolist() == [30]
    assert on.hazards == ()


@pytest.mark.parametrize("fenced", [False, True])
def test_restaging_without_a_fence_is_a_hazard(on: Device, kind: str, *, fenced: bool) -> None:
    staging, inputs = buffer(on, kind, "staging", staging=True), buffer(on, kind, "inputs")
    compute, sums = on.stream("compute@0"), list[torch.Tensor]()
    fence = None
    for step in range(4):
        if fenced and fence is not None:
            fence.synchronize(HOST)
        on.host_access(HOST, "stage", step=step, writes=[staging])
        staging.tensor.fill_(step)

        def load() -> None:
            inputs.tensor.copy_(staging.tensor, non_blocking=True)
            sums.append(inputs.tensor.sum())

        compute.submit("load", load, step=step, reads=[staging], writes=[inputs])
        fence = compute.record()
        on.end_step(step, HOST)
    on.drain()
    assert len(on.hazards) == (0 if fenced else 1)
    if fenced:
        assert [total.item() / SIZE for total in sums] == [0, 1, 2, 3]


@pytest.mark.parametrize("owned", [False, True])
def test_a_borrowed_view_is_a_read_of_its_buffer(on: Device, kind: str, *, owned: bool) -> None:
    hidden, fetched = buffer(on, kind, "hidden"), list[torch.Tensor]()
    compute, copy = on.stream("compute@0"), on.stream("copy@0")
    for step in range(3):
        rows: list[torch.Tensor] = []

        def run(step: int = step, rows: list[torch.Tensor] = rows) -> None:
            hidden.tensor.fill_(step)
            rows.append(hidden.tensor.clone() if owned else hidden.tensor[: SIZE // 2])

        compute.submit("forward", run, step=step, writes=[hidden])
        copy.wait(compute.record())
        fetch = lambda rows=rows: fetched.append(rows[0].to("cpu", copy=True))  # noqa: E731
        copy.submit("fetch", fetch, step=step, reads=lambda rows=rows: rows)
        on.end_step(step, HOST)
    on.drain()
    assert len(on.hazards) == (0 if owned else 1)
    if owned:
        assert [rows.unique().tolist() for rows in fetched] == [[0], [1], [2]]


def test_the_history_is_complete_after_a_drain(on: Device, kind: str) -> None:
    value = buffer(on, kind, "value")
    for step in range(3):
        for name in ("compute@0", "compute@1"):
            work = lambda: [value.tensor.abs()].clear()  # noqa: E731
            on.stream(name).submit("read", work, step=step, cost=2, reads=[value])
    on.drain()
    assert [on.log.num_operations(rank) for rank in (0, 1)] == [3, 3]
    assert on.log.total_cost(1) == 6
    assert all(op.completed is not None for op in on.log.operations)
    assert all((op.completed or 0) > op.submitted for op in on.log.operations)
    numbers = [n for op in on.log.operations for n in (op.submitted, op.completed)]
    assert sorted(numbers) == list(range(12))
    on.begin_run()
    assert on.log.operations == ()


def test_a_failure_reaches_every_waiter_and_ends_with_the_run(on: Device, kind: str) -> None:
    def fail() -> None:
        raise ValueError("no such row")

    value = buffer(on, kind, "value")
    stream = on.stream("compute@0")
    stream.submit("bad", fail, step=3)
    skipped = stream.submit("late", lambda: [value.tensor.add_(1)].clear(), step=4)
    for wait in (lambda: stream.record().synchronize(HOST), on.drain):
        with pytest.raises(WorkerError, match=r"'bad' of step 3 on compute@0 raised ValueError"):
            wait()
    on.begin_run()
    stream.submit("again", lambda: [value.tensor.add_(1)].clear(), step=0)
    on.drain()
    assert skipped.completed is None
    assert value.tensor.unique().tolist() == [1]


def test_an_event_of_another_device_is_refused(on: Device, kind: str) -> None:
    other = create_device("cpu", StreamPolicy(), 1)
    try:
        event = other.stream("compute@0").record()
        with pytest.raises(LedgerError, match="was not recorded on a stream of this device"):
            on.stream("compute@0").wait(event)
    finally:
        other.close()


def test_close_may_be_repeated_and_is_the_end(on: Device, kind: str) -> None:
    on.close()
    on.close()
    with pytest.raises(LedgerError, match="the device is closed"):
        on.drain()


def test_without_a_device_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigurationError, match=r"no usable CUDA device.*devices seen: \d"):
        create_device("cuda", StreamPolicy(), 1)


def test_a_policy_that_cannot_steer_a_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(ConfigurationError, match=r"'lag\(copy@last\)' cannot steer a CUDA device"):
        CudaDevice(StreamPolicy.parse("lag(copy@last)"), 1)

"""Program order, waits, failures and the end of a device, under every policy.

Passes wrongly if operations ran in the right order by luck, without the waits. Ruled out by
suites/meta/test_suites_can_fail.py: `streams-do-not-wait`.
"""

from __future__ import annotations

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import StreamPolicy
from engine.errors import ConfigurationError, LedgerError, WorkerError
from engine.stream import Buffer, create_device
from suites.unit.stream.bench import COOPERATIVE, HOST, POLICIES, buffer, device, noting

STREAMS = ("compute@0", "copy@0", "compute@1")


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=25, deadline=None)
@given(where=st.lists(st.sampled_from(STREAMS), max_size=12))
def test_each_stream_runs_in_program_order(policy: str, where: list[str]) -> None:
    orders: dict[str, list[str]] = {name: [] for name in STREAMS}
    with device(policy) as on:
        for step, name in enumerate(where):
            on.stream(name).submit("x", noting(orders[name], str(step)), step=step)
        on.drain()
        assert [op.completed is not None for op in on.log.operations] == [True] * len(where)
    for name, order in orders.items():
        assert order == [str(step) for step, at in enumerate(where) if at == name]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_waits_for_another(policy: str) -> None:
    """A chain there and back; each link must see what the one before it left."""
    value = torch.zeros(1, dtype=torch.int64)
    with device(policy) as on:
        a, b = on.stream("compute@0"), on.stream("copy@0")
        for step in range(4):
            a.submit("add", lambda: value.add_(1).add_(0), step=step)
            b.wait(a.record())
            b.submit("double", lambda: value.mul_(2), step=step)
            a.wait(b.record())
        on.drain()
    assert value.item() == 30  # ((((0 + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2


@pytest.mark.parametrize("policy", POLICIES)
def test_an_event_fences_what_its_stream_waits_for_even_before_the_next_operation(
    policy: str,
) -> None:
    order: list[str] = []
    with device(policy) as on:
        a, b = on.stream("compute@0"), on.stream("copy@0")
        a.submit("a", noting(order, "a"), step=0)
        b.wait(a.record())
        b.record().synchronize(HOST)
        assert order == ["a"]


@pytest.mark.parametrize("policy", COOPERATIVE)
def test_a_wait_runs_no_more_than_it_needs(policy: str) -> None:
    """Long enough that a recursive walk would exhaust the stack."""
    order: list[str] = []
    with device(policy) as on:
        a, b = on.stream("compute@0"), on.stream("copy@0")
        for step in range(2000):
            a.submit("a", noting(order, "a"), step=step)
            b.wait(a.record())
            b.submit("b", noting(order, "b"), step=step)
            a.wait(b.record())
        b.record().synchronize(HOST)
    assert order == ["a", "b"] * 2000


@pytest.mark.parametrize("policy", ["threaded", "lag(compute@first)", "lag(compute@last)"])
def test_a_stream_waits_for_several(policy: str) -> None:
    order: list[str] = []
    with device(policy) as on:
        copy = on.stream("copy@0")
        for name in ("compute@0", "compute@1"):
            on.stream(name).submit("first", noting(order, "first"), step=0)
            copy.wait(on.stream(name).record())
        copy.submit("last", noting(order, "last"), step=0)
        on.drain()
    assert order == ["first", "first", "last"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_drain_orders_everything(policy: str) -> None:
    with device(policy) as on:
        shared = buffer(on, "shared")
        on.stream("compute@0").submit("write", lambda: None, step=0, writes=[shared])
        on.drain()
        on.stream("copy@0").submit("write", lambda: None, step=1, writes=[shared])
        on.host_access("driver", "touch", step=1, reads=[shared])
        on.drain()
        assert [hazard.split(" it")[0] for hazard in on.hazards] == [
            "buffer 'shared': 'write' of step 1 on copy@0 writes"
        ]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_operation_reads_when_it_runs(policy: str) -> None:
    """Only a policy that runs at submit may see the value that was there at submit."""
    with device(policy) as on:
        staging, seen = buffer(on, "staging"), list[float]()
        gate = threading.Event()
        stream = on.stream("compute@0")
        if policy == "threaded":
            stream.submit("hold", lambda: [gate.wait()].clear(), step=0)
        stream.submit("read", lambda: seen.append(staging.tensor.item()), step=0, cost=9)
        staging.tensor.fill_(1)
        gate.set()
        on.drain()
    at_submit = policy in ("immediate", "lag(compute@last)", "lag(copy@first)", "lag(copy@last)")
    assert seen == [0 if at_submit else 1]


@pytest.mark.parametrize("policy", POLICIES)
def test_operations_run_in_inference_mode_on_whatever_thread(policy: str) -> None:
    modes: list[bool] = []
    with device(policy) as on:
        see = lambda: modes.append(torch.is_inference_mode_enabled())  # noqa: E731
        on.stream("compute@0").submit("see", see, step=0)
        on.drain()
    assert modes == [True]
    assert not torch.is_inference_mode_enabled()


def _fail() -> None:
    raise ValueError("no such row")


FAILURE = (
    r"operation 'bad' of step 3 on copy@0 raised ValueError: no such row; what was submitted "
    r"after it was skipped"
)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_failure_reaches_every_waiter_and_stops_the_run(policy: str) -> None:
    order: list[str] = []
    with device(policy) as on:
        copy, compute = on.stream("copy@0"), on.stream("compute@0")
        copy.submit("good", noting(order, "good"), step=3)
        copy.submit("bad", _fail, step=3)
        bad = copy.record()
        copy.submit("behind", noting(order, "behind"), step=3)
        compute.wait(bad)
        compute.submit("waiting", noting(order, "waiting"), step=3)
        for wait in (lambda: bad.synchronize(HOST), on.drain, on.drain):
            with pytest.raises(WorkerError, match=FAILURE) as caught:
                wait()
            assert isinstance(caught.value.__cause__, ValueError)
        late = copy.submit("late", noting(order, "late"), step=4)
        other = compute.submit("other", noting(order, "other"), step=4)
        on.end_step(4, HOST)
        with pytest.raises(WorkerError, match=FAILURE):
            compute.record().synchronize(HOST)
        assert order == ["good"]
        assert (bad.done, late.completed, other.completed) == (False, None, None)
        assert on.log.num_operations(0) == 1

        compute.wait(bad)
        on.begin_run()
        assert copy.record().done  # nothing of the failed run is waited for
        compute.submit("again", noting(order, "again"), step=0)
        on.drain()
        assert order == ["good", "again"]


def test_the_first_failure_is_the_one_that_is_told() -> None:
    gate = threading.Event()

    def fail_later() -> None:
        gate.wait()
        raise TypeError("an after-effect")

    with device("threaded") as on:
        copy, compute = on.stream("copy@0"), on.stream("compute@0")
        begun = threading.Event()
        compute.submit("later", lambda: [begun.set(), fail_later()].clear(), step=3)
        begun.wait()
        copy.submit("bad", _fail, step=3)
        with pytest.raises(WorkerError, match=FAILURE):
            copy.record().synchronize(HOST)
        gate.set()
        with pytest.raises(WorkerError, match=FAILURE):
            on.drain()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_failing_account_of_late_reads_is_a_failure(policy: str) -> None:
    with device(policy) as on:
        on.stream("copy@0").submit("bad", lambda: None, step=3, reads=lambda: _fail() or [])
        with pytest.raises(WorkerError, match=FAILURE):
            on.drain()


@pytest.mark.parametrize("policy", COOPERATIVE)
def test_an_interrupt_is_raised_at_once_and_kept(policy: str) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with device(policy) as on:

        def use() -> None:
            on.stream("compute@0").submit("bad", interrupt, step=0)
            on.drain()

        with pytest.raises(KeyboardInterrupt):
            use()
        with pytest.raises(WorkerError, match="KeyboardInterrupt"):
            on.drain()


def test_a_thread_outlives_whatever_its_operation_raises() -> None:
    def leave() -> None:
        raise SystemExit

    order: list[str] = []
    with device("threaded") as on:
        stream = on.stream("compute@0")
        stream.submit("leave", leave, step=0)
        with pytest.raises(WorkerError, match="SystemExit"):
            on.drain()
        on.begin_run()
        stream.submit("a", noting(order, "a"), step=0)
        on.drain()
    assert order == ["a"]


@pytest.mark.parametrize("policy", POLICIES)
def test_close_ends_the_threads_and_may_be_repeated(policy: str) -> None:
    order: list[str] = []
    before = set(threading.enumerate())
    on = create_device("cpu", StreamPolicy.parse(policy), 2)
    for name in STREAMS:
        on.stream(name).submit("x", noting(order, name), step=0)
    if policy == "threaded":
        assert {t.name for t in set(threading.enumerate()) - before} == set(STREAMS)
    event = on.stream("copy@0").record()
    on.close()
    on.close()
    assert set(threading.enumerate()) <= before
    for use in (
        lambda: on.stream("copy@0").submit("y", noting(order, "y"), step=1),
        lambda: event.synchronize(HOST),
        lambda: on.end_step(0, HOST),
        on.drain,
        on.begin_run,
    ):
        with pytest.raises(LedgerError, match="the device is closed"):
            use()


@pytest.mark.parametrize("policy", ["threaded", "lag(compute@first)"])
def test_a_run_begins_only_on_a_drained_device(policy: str) -> None:
    gate = threading.Event()
    with device(policy) as on:
        on.stream("compute@0").submit("held", lambda: [gate.wait()].clear(), step=0)
        with pytest.raises(LedgerError, match="drain the device first"):
            on.begin_run()
        gate.set()
        on.drain()
        on.begin_run()
        assert on.log.operations == ()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_run_forgets_hazards_and_keeps_events_and_buffers(policy: str) -> None:
    with device(policy) as on:
        a, b, shared = on.stream("compute@0"), on.stream("copy@0"), buffer(on, "shared")
        a.submit("write", lambda: None, step=0, writes=[shared])
        old = a.record()
        b.submit("write too", lambda: None, step=0, writes=[shared])
        on.drain()
        assert len(on.hazards) == 1
        on.begin_run()
        assert on.hazards == ()
        old.synchronize(HOST)
        b.wait(old)
        # Ordered after all of the old run, on every stream, without another word.
        b.submit("write too", lambda: None, step=0, writes=[shared])
        on.drain()
        assert on.hazards == ()
        assert [op.number for op in on.log.operations] == [0]


@pytest.mark.parametrize("policy", POLICIES)
def test_only_a_host_may_use_the_device(policy: str) -> None:
    with device(policy) as on:
        stream = on.stream("compute@0")
        own = stream.record()
        stream.submit("selfish", lambda: own.synchronize(HOST), step=1)
        with pytest.raises(WorkerError, match=r"'selfish' of step 1.*tried to wait.*only a host"):
            on.drain()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("compute", "expected KIND@RANK"),
        ("@0", "expected KIND@RANK"),
        ("compute@2", "the ranks of this device are 0 to 1"),
    ],
)
def test_a_stream_is_named_after_its_kind_and_rank(name: str, message: str) -> None:
    with device("immediate") as on, pytest.raises(ConfigurationError, match=message):
        on.stream(name)


def test_what_is_not_of_the_device_is_refused() -> None:
    with device("immediate") as on, device("immediate") as other:
        stream, stranger = on.stream("compute@0"), Buffer("stranger", torch.zeros(1))
        shared = buffer(on, "shared", size=4)
        assert on.stream("compute@0") is stream
        on.register(Buffer("shared", shared.tensor[2:]))  # again, by a view
        for message, use in {
            "was not recorded": lambda: stream.wait(other.stream("compute@0").record()),
            r"'stranger', which is not registered.*\['shared'\]": lambda: on.host_access(
                HOST, "touch", step=0, reads=[stranger]
            ),
            "'alias' shares its storage with buffer 'shared'": lambda: on.register(
                Buffer("alias", shared.tensor[:1])
            ),
            "cost=-1, expected at least 0": lambda: stream.submit("x", _fail, step=0, cost=-1),
            "'empty' has no memory": lambda: Buffer("empty", torch.zeros(0)),
        }.items():
            with pytest.raises(LedgerError, match=message):
                use()


def test_a_device_of_an_unknown_kind_or_no_ranks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"device='tpu'.*'cpu', 'cuda'"):
        create_device("tpu", StreamPolicy(), 1)
    with pytest.raises(ConfigurationError, match="num_ranks=0"):
        create_device("cpu", StreamPolicy(), 0)

"""When each policy runs what.

Passes wrongly if a policy by another name ran everything at submit. Ruled out by
suites/meta/test_suites_can_fail.py: `a-lagging-stream-runs-at-submit`.
"""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import StreamPolicy
from engine.errors import ConfigurationError
from engine.stream import create_device
from engine.stream.policies import resolve_stream
from suites.unit.stream.bench import HOST, device, noting


def test_immediate_runs_at_submit() -> None:
    order: list[str] = []
    with device("immediate") as on:
        on.stream("compute@0").submit("a", noting(order, "a"), step=0)
        assert order == ["a"]


def test_lag_runs_the_lagging_stream_only_as_far_as_someone_waits() -> None:
    order: list[str] = []
    with device("lag(compute@first)") as on:
        lagging, other = on.stream("compute@0"), on.stream("compute@1")
        lagging.submit("a", noting(order, "a"), step=0)
        event = lagging.record()
        lagging.submit("b", noting(order, "b"), step=0)
        other.submit("c", noting(order, "c"), step=0)
        on.end_step(0, HOST)
        assert (order, event.done) == (["c"], False)
        other.wait(event)
        assert order == ["c"]
        other.submit("d", noting(order, "d"), step=0)
        assert (order, event.done) == (["c", "a", "d"], True)
        lagging.record().synchronize(HOST)
        assert order == ["c", "a", "d", "b"]


@pytest.mark.parametrize(
    ("selector", "num_ranks", "stream"),
    [
        ("compute@first", 3, "compute@0"),
        ("compute@last", 3, "compute@2"),
        ("copy@last", 1, "copy@0"),
        ("copy@1", 2, "copy@1"),
    ],
)
def test_lag_names_a_stream(selector: str, num_ranks: int, stream: str) -> None:
    assert resolve_stream(selector, num_ranks) == stream


def test_lag_of_a_rank_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'copy@2'.*no rank 2.*0 to 1"):
        create_device("cpu", StreamPolicy.parse("lag(copy@2)"), 2)


def test_paced_pays_for_the_head_before_it_runs() -> None:
    """Units 2, costs 3, 3, 1: after one submit 2 units are there; after two 4, so 1 is left; ..."""
    order: list[str] = []
    with device("paced(2)") as on:
        stream = on.stream("compute@0")
        stream.submit("a", noting(order, "a"), step=0, cost=3)
        assert order == []  # credit 2
        stream.submit("b", noting(order, "b"), step=0, cost=3)
        assert order == ["a"]  # credit 4 - 3
        stream.submit("c", noting(order, "c"), step=0, cost=1)
        assert order == ["a", "b"]  # credit 3 - 3
        stream.submit("d", noting(order, "d"), step=0, cost=4)
        assert order == ["a", "b", "c"]  # credit 2 - 1


def test_paced_credit_is_lost_when_the_queue_is_empty() -> None:
    order: list[str] = []
    with device("paced(5)") as on:
        stream = on.stream("compute@0")
        stream.submit("a", noting(order, "a"), step=0, cost=1)
        stream.submit("b", noting(order, "b"), step=0, cost=6)
        assert order == ["a"]  # 5, not 5 + 4


def test_paced_credit_comes_from_any_submit_of_the_rank_and_of_no_other() -> None:
    order: list[str] = []
    with device("paced(1)") as on:
        on.stream("compute@0").submit("a", noting(order, "a"), step=0, cost=2)
        on.stream("copy@1").submit("b", noting(order, "b"), step=0, cost=9)
        assert order == []
        on.stream("copy@0").submit("c", noting(order, "c"), step=0, cost=9)
        assert order == ["a"]


def test_paced_runs_what_is_paid_as_soon_as_it_is_unblocked() -> None:
    order: list[str] = []
    with device("paced(3)") as on:
        slow, fast = on.stream("compute@0"), on.stream("compute@1")
        slow.submit("a", noting(order, "a"), step=0, cost=5)
        fast.wait(slow.record())
        fast.submit("b", noting(order, "b"), step=0, cost=3)
        assert order == []  # b is paid for, and waits for a
        slow.submit("c", noting(order, "c"), step=0, cost=9)
        assert order == ["a", "b"]


def test_paced_serves_a_host_that_waits_whatever_the_credit() -> None:
    order: list[str] = []
    with device("paced(1)") as on:
        stream = on.stream("compute@0")
        stream.submit("a", noting(order, "a"), step=0, cost=100)
        event = stream.record()
        stream.submit("b", noting(order, "b"), step=0, cost=100)
        event.synchronize(HOST)
        assert order == ["a"]


def test_paced_runs_what_a_hosts_wait_unblocked() -> None:
    order: list[str] = []
    with device("paced(1)") as on:
        slow, fast = on.stream("compute@0"), on.stream("copy@0")
        slow.submit("a", noting(order, "a"), step=0, cost=100)
        event = slow.record()
        fast.wait(event)
        fast.submit("b", noting(order, "b"), step=0, cost=1)
        fast.submit("c", noting(order, "c"), step=0, cost=100)
        assert order == []
        event.synchronize(HOST)
        assert order == ["a", "b"]


def test_paced_credit_does_not_outlive_a_failed_run() -> None:
    order: list[str] = []
    with device("paced(2)") as on:
        dropped, failing = on.stream("compute@0"), on.stream("copy@0")
        dropped.submit("a", noting(order, "a"), step=0, cost=9)
        failing.submit("b", lambda: [][0], step=0, cost=2)
        on.begin_run()
        dropped.submit("c", noting(order, "c"), step=0, cost=3)
        assert order == []  # 2, not 2 + 2 + 2


def test_drawn_runs_at_decision_points_and_as_it_is_told() -> None:
    order: list[str] = []
    with device("drawn(0,2,1)") as on:
        a, b = on.stream("compute@0"), on.stream("copy@0")
        a.submit("a", noting(order, "a"), step=0)
        b.submit("b", noting(order, "b"), step=0)
        b.wait(a.record())
        b.submit("c", noting(order, "c"), step=0)
        assert order == []
        on.end_step(0, HOST)
        assert order == []
        on.host_access(HOST, "touch", step=1)
        assert order == ["b"]  # c waits for a
        on.end_step(1, HOST)
        assert order == ["b", "a"]
        on.end_step(2, HOST)  # the list is at its end
        assert order == ["b", "a", "c"]


def test_drawn_takes_a_choice_before_a_host_waits() -> None:
    order: list[str] = []
    with device("drawn(2,0,0)") as on:
        a, b = on.stream("compute@0"), on.stream("copy@0")
        a.submit("a", noting(order, "a"), step=0)
        b.submit("b", noting(order, "b"), step=0)
        a.record().synchronize(HOST)
        assert order == ["b", "a"]


@given(st.lists(st.integers(0, 7), max_size=12), st.lists(st.integers(0, 2), max_size=12))
def test_drawn_choices_replay_in_a_later_run_and_on_a_new_device(
    choices: list[int], submits: list[int]
) -> None:
    names = ("compute@0", "copy@0", "compute@1")

    def run(on_runs: int) -> list[list[str]]:
        runs: list[list[str]] = []
        with device(f"drawn({','.join(map(str, choices))})") as on:
            for _ in range(on_runs):
                order: list[str] = []
                on.begin_run()
                for step, which in enumerate(submits):
                    stream = on.stream(names[which])
                    stream.submit("x", noting(order, f"{step}"), step=step)
                    on.end_step(step, HOST)
                on.drain()
                runs.append(order)
        return runs

    first, second = run(2)
    assert [first] == [second] == run(1)


def test_threaded_streams_really_run_at_the_same_time() -> None:
    """Two operations that each need the other to have begun: only concurrency ends this."""
    meet = threading.Barrier(2)
    order: list[str] = []
    with device("threaded") as on:
        for name in ("compute@0", "copy@0"):
            on.stream(name).submit("meet", lambda: order.append(str(meet.wait() in (0, 1))), step=0)
        on.drain()
    assert order == ["True", "True"]


def test_threaded_submit_does_not_wait_for_the_operation() -> None:
    gate = threading.Barrier(2)
    noted: list[int] = []
    with device("threaded") as on:
        stream = on.stream("compute@0")
        stream.submit("held", lambda: noted.append(gate.wait()), step=0)
        event = stream.record()
        assert not event.done
        gate.wait()
        event.synchronize(HOST)
        assert event.done

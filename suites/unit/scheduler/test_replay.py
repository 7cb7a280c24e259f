"""Replay: exactly the recorded steps, or a PlanError that says where they do not fit.

Passes wrongly if a plan was followed as far as it goes, contradictions included. Ruled out by
suites/meta/test_suites_can_fail.py: `plans-are-not-read-before-replay`.
"""

from __future__ import annotations

import pytest

from engine.errors import PlanError
from engine.kv.blocks import BlockPool
from engine.plan import StepPlan, plan_from_json
from engine.scheduler.replay import ReplayScheduler
from suites.unit.scheduler.loop import Loop

PLAN = plan_from_json(
    [
        [["a", 0, 3, 3], ["b", 0, 2, 6]],
        [["b", 2, 4, 6]],
        [["c", 0, 1, 1]],
    ]
)
LENGTHS = {"a": 3, "b": 6, "c": 1}


def replay(
    plan: tuple[StepPlan, ...] = PLAN,
    *,
    lengths: dict[str, int] = LENGTHS,
    pool: BlockPool | None = None,
    slots: int = 4,
) -> ReplayScheduler:
    scheduler = ReplayScheduler(plan, pool, slots)
    for request_id, length in lengths.items():
        scheduler.add(request_id, length)
    return scheduler


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_recorded_steps_come_out(depth: int) -> None:
    """A plan no scheduler of ours would make (b is cut early) is replayed all the same."""
    assert Loop(scheduler=replay(), depth=depth).run() == PLAN


def test_order_of_arrival_and_priority_do_not_matter() -> None:
    scheduler = ReplayScheduler(PLAN, None, 4)
    for request_id in ("c", "b", "a"):
        scheduler.add(request_id, LENGTHS[request_id], priority=-len(request_id))
    assert Loop(scheduler=scheduler).run() == PLAN


def test_short_of_blocks_it_waits_and_then_emits_the_same_step() -> None:
    scheduler = replay(pool=BlockPool(3, 4))
    first, second = scheduler.schedule(), scheduler.schedule()
    assert first is not None
    assert second is not None
    assert scheduler.schedule() is None, "a and b hold all three blocks"
    assert scheduler.complete(first.plan) == ("a",)
    third = scheduler.schedule()
    assert third is not None
    assert third.plan == PLAN[2]
    assert third.allocations["c"].blocks == (0,)


def test_a_pool_that_is_too_small_for_a_step_is_refused() -> None:
    with pytest.raises(PlanError, match=r"step 0, request 'b'.*1 blocks"):
        replay(pool=BlockPool(1, 6)).schedule()
    with pytest.raises(PlanError, match=r"step 0, request 'b'.*max_slots=1"):
        replay(slots=1).schedule()


def test_requests_the_plan_does_not_know_are_refused() -> None:
    with pytest.raises(PlanError, match=r"no step for request 'z'.*\['a', 'b', 'c'\]"):
        replay(lengths={"z": 3})


def test_another_length_is_refused() -> None:
    with pytest.raises(PlanError, match=r"'b'.*expected total=6, got num_tokens=7"):
        replay(lengths={"b": 7})


def test_a_missing_request_is_refused_and_not_forgotten() -> None:
    scheduler = replay(lengths={"a": 3, "b": 6})
    with pytest.raises(PlanError, match=r"step 2, request 'c'.*1 tokens, got no such request"):
        Loop(scheduler=scheduler).run()
    assert scheduler.has_work


def test_a_plan_that_leaves_tokens_over_is_refused() -> None:
    scheduler = replay(PLAN[:1], lengths={"a": 3, "b": 6})
    with pytest.raises(PlanError, match=r"1 steps.*'b' expected 6 tokens, got 2"):
        Loop(scheduler=scheduler).run()


def test_an_aborted_request_is_not_run() -> None:
    scheduler = replay()
    first = scheduler.schedule()
    assert first is not None
    scheduler.abort("b")
    with pytest.raises(PlanError, match=r"step 1, request 'b'.*got an aborted request"):
        scheduler.schedule()


def test_a_request_added_again_halfway_is_refused() -> None:
    scheduler = replay()
    first = scheduler.schedule()
    assert first is not None
    scheduler.abort("b")
    scheduler.complete(first.plan)
    scheduler.add("b", 6)
    with pytest.raises(PlanError, match=r"step 1, request 'b'.*hold its first 2 tokens, got 0"):
        scheduler.schedule()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([[]], "step 0: expected at least one entry"),
        ([[["a", 3, 1, 3]]], "between 1 and the 0 tokens left, got count=1"),
        ([[["a", 2, 0, 3], ["b", 0, 1, 1]]], "expected to preempt a request that was last seen"),
        ([[["a", 0, 2, 3]], [["a", 1, 0, 3], ["b", 0, 1, 1]]], "got PlanEntry.*start=1, count=0"),
        ([[["a", 0, 2, 3]], [["a", 1, 2, 3]]], "step 1, request 'a': expected start=2"),
        ([[["a", 0, 2, 3]], [["a", 2, 1, 4]]], "expected start=2, total=3, got start=2, total=4"),
        ([[["a", 0, 1, 3], ["a", 1, 2, 3]]], "expected one entry a step"),
        ([[["a", 0, 4, 3]]], "between 1 and the 3 tokens left, got count=4"),
        ([[["a", 0, 0, 3]]], "expected at least one entry"),
        ([[["a", 0, 3, 3]], [["a", 0, 3, 3]]], "step 1, request 'a': expected start=3"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(
    steps: list[list[list[int | str]]], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        ReplayScheduler(plan_from_json(steps), None, 4)

"""First come, first served: order, budgets, chunks, refusals, aborts.

Passes wrongly if every prompt fitted the budget, so that nothing was ever split. Ruled out by
suites/meta/test_suites_can_fail.py: `the-budget-is-not-kept`.
"""

from __future__ import annotations

import pytest

from engine.config import SchedulerConfig
from engine.errors import LedgerError, RequestError
from engine.kv.blocks import BlockPool
from engine.plan import plan_to_json
from engine.scheduler.fcfs import FcfsScheduler
from suites.unit.scheduler.loop import Loop


def scheduler(
    *,
    budget: int = 8,
    seqs: int = 4,
    chunked: bool | None = True,
    can_chunk: bool = True,
    num_blocks: int | None = None,
    slots: int = 8,
) -> FcfsScheduler:
    return FcfsScheduler(
        SchedulerConfig(max_num_batched_tokens=budget, max_num_seqs=seqs, chunked_prefill=chunked),
        None if num_blocks is None else BlockPool(num_blocks, block_size=4),
        slots,
        can_chunk,
    )


def plan(s: FcfsScheduler, **lengths: int) -> list[list[list[int | str]]]:
    for request_id, length in lengths.items():
        s.add(request_id, length)
    return plan_to_json(Loop(scheduler=s).run())


def test_a_prompt_is_split_to_what_is_left_of_the_budget() -> None:
    assert plan(scheduler(), a=3, b=15, c=2) == [
        [["a", 0, 3, 3], ["b", 0, 5, 15]],
        [["b", 5, 8, 15]],
        [["b", 13, 2, 15], ["c", 0, 2, 2]],
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"chunked": False, "can_chunk": True},
        {"chunked": True, "can_chunk": False},
        {"chunked": None, "can_chunk": False},
    ],
)
def test_without_chunking_a_prompt_waits_for_the_next_step(options: dict[str, bool]) -> None:
    s = scheduler(**options)
    assert plan(s, a=3, b=6, c=2) == [
        [["a", 0, 3, 3]],
        [["b", 0, 6, 6], ["c", 0, 2, 2]],
    ]


def test_chunking_left_to_the_model_is_on_when_the_model_can() -> None:
    assert len(plan(scheduler(chunked=None), a=9)) == 2


def test_the_head_of_the_queue_is_not_overtaken() -> None:
    """c would fit beside a, but b came first."""
    assert plan(scheduler(chunked=False), a=5, b=4, c=1)[0] == [["a", 0, 5, 5]]


def test_at_most_max_num_seqs_entries_a_step() -> None:
    steps = plan(scheduler(seqs=2), a=1, b=1, c=1, d=1, e=1)
    assert [len(step) for step in steps] == [2, 2, 1]


def test_lower_priority_values_run_first_and_equal_ones_in_arrival_order() -> None:
    s = scheduler(seqs=1)
    for request_id, priority in (("a", 1), ("b", 0), ("c", 1), ("d", -1)):
        s.add(request_id, 1, priority=priority)
    steps = Loop(scheduler=s).run()
    assert [step.entries[0].request_id for step in steps] == ["d", "b", "a", "c"]


def test_the_next_chunk_is_scheduled_before_the_last_result_was_taken() -> None:
    s = scheduler()
    s.add("a", 20)
    steps = [s.schedule() for _ in range(3)]
    starts = [step.plan.entries[0].start for step in steps if step is not None]
    assert starts == [0, 8, 16]
    assert s.schedule() is None
    assert s.has_work
    assert [s.complete(step.plan) for step in steps if step is not None] == [(), (), ("a",)]
    assert not s.has_work


def test_what_a_finished_request_holds_is_reused_only_after_its_result_was_taken() -> None:
    s = scheduler(num_blocks=3, slots=2)
    s.add("a", 8)
    s.add("b", 8)
    first = s.schedule()
    assert first is not None
    assert first.allocations["a"].blocks == (0, 1)
    assert s.schedule() is None, "b needs 2 blocks and a's result has not been taken"
    assert s.complete(first.plan) == ("a",)
    second = s.schedule()
    assert second is not None
    assert (second.allocations["b"].slot, second.allocations["b"].blocks) == (0, (2, 1))


def test_a_step_waits_rather_than_shrink_because_a_result_is_late() -> None:
    """b's last chunk could run alone; with the result of `a` taken, c would run beside it."""
    s = scheduler(slots=2)
    for request_id, length in (("a", 4), ("b", 6), ("c", 1)):
        s.add(request_id, length)
    first = s.schedule()
    assert first is not None
    assert s.schedule() is None
    s.complete(first.plan)
    second = s.schedule()
    assert second is not None
    assert [e.request_id for e in second.plan.entries] == ["b", "c"]


def test_refusals_name_both_numbers_and_leave_the_rest_alone() -> None:
    s = scheduler(chunked=False, num_blocks=2)
    s.add("a", 8)
    with pytest.raises(RequestError, match=r"'b'.*num_tokens=9.*max_num_batched_tokens=8.*turn"):
        s.add("b", 9)
    with pytest.raises(RequestError, match=r"'a' is in use"):
        s.add("a", 1)
    with pytest.raises(RequestError, match=r"'c' has num_tokens=0"):
        s.add("c", 0)
    with pytest.raises(RequestError, match=r"this model cannot be chunked"):
        scheduler(can_chunk=False).add("d", 9)
    with pytest.raises(RequestError, match=r"'e'.*9 tokens.*3 KV blocks.*num_blocks=2.*raise"):
        scheduler(num_blocks=2).add("e", 9)
    assert [[e.request_id for e in step.entries] for step in Loop(scheduler=s).run()] == [["a"]]


def test_results_are_taken_oldest_first_and_once() -> None:
    s = scheduler()
    s.add("a", 20)
    first, second = s.schedule(), s.schedule()
    assert first is not None
    assert second is not None
    with pytest.raises(LedgerError, match=r"step 1\) is out of order"):
        s.complete(second.plan)
    s.complete(first.plan)
    with pytest.raises(LedgerError, match=r"step 0\) is out of order"):
        s.complete(first.plan)


def test_aborting_what_waits_or_is_unknown() -> None:
    s = scheduler(seqs=1)
    s.add("a", 1)
    s.add("b", 1)
    s.abort("b")
    s.abort("nobody")
    s.check_integrity()
    assert [[e.request_id for e in step.entries] for step in Loop(scheduler=s).run()] == [["a"]]


def test_aborting_in_flight_holds_everything_until_the_last_step_is_back() -> None:
    s = scheduler(num_blocks=5)
    s.add("a", 20)
    s.add("b", 8)
    first, second = s.schedule(), s.schedule()
    assert first is not None
    assert second is not None
    s.abort("a")
    with pytest.raises(RequestError, match="'a' is in use"):
        s.add("a", 1)
    assert s.schedule() is None, "b needs two blocks and a's steps are in flight"
    assert s.complete(first.plan) == ()
    assert s.schedule() is None
    assert s.complete(second.plan) == (), "an aborted request does not finish"
    s.check_integrity()
    third = s.schedule()
    assert third is not None
    assert [e.request_id for e in third.plan.entries] == ["b"]
    assert s.complete(third.plan) == ("b",)
    assert not s.has_work


@pytest.mark.parametrize("what", ["slot", "blocks", "pins", "flight"])
def test_the_ledger_notices(what: str) -> None:
    s = scheduler(num_blocks=8)
    s.add("a", 20)
    s.schedule()
    s.check_integrity()
    roster = s._roster
    assert roster.pool is not None
    if what == "slot":
        roster.slots.release("a")
    elif what == "blocks":
        roster.pool.release("a")
    elif what == "pins":
        roster.pool.unpin([0])
    else:
        roster._in_flight.pop()
    with pytest.raises(
        LedgerError, match=r"\['a'\].*|expected .*held|pinned blocks|the queue says"
    ):
        s.check_integrity()

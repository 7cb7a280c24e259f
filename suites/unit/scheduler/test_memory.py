"""Preemption, priorities, long prefills and the prefix cache, on one short line of prompts.

Passes wrongly if no step was in flight when memory was taken from a prompt. Ruled out by
suites/meta/test_suites_can_fail.py: `steps-in-flight-are-not-waited-for`.
"""

from __future__ import annotations

import pytest

from engine.config import SchedulerConfig
from engine.errors import ConfigurationError, PlanError, RequestError
from engine.kv.blocks import BlockPool
from engine.kv.prefix import Prefix, block_keys
from engine.plan import plan_from_json, plan_to_json
from engine.scheduler.fcfs import FcfsScheduler
from engine.scheduler.replay import ReplayScheduler
from suites.unit.scheduler.loop import Loop

BLOCK = 4


def scheduler(
    num_blocks: int, *, budget: int = 8, threshold: int = 0, seqs: int = 4, slots: int = 8
) -> FcfsScheduler:
    return FcfsScheduler(
        SchedulerConfig(
            max_num_batched_tokens=budget,
            max_num_seqs=seqs,
            long_prefill_token_threshold=threshold,
        ),
        BlockPool(num_blocks, BLOCK),
        slots,
        can_chunk=True,
    )


def prefix(text: str, *, readable: bool = True, salt: str = "") -> Prefix:
    keys = block_keys([ord(c) for c in text], (), block_size=BLOCK, context=salt)
    return Prefix(keys=keys, readable=readable)


def test_a_long_prompt_leaves_room_for_those_behind_it() -> None:
    s = scheduler(16, threshold=5)
    s.add("a", 12)
    s.add("b", 3)
    assert plan_to_json(Loop(scheduler=s).run()) == [
        [["a", 0, 5, 12], ["b", 0, 3, 3]],
        [["a", 5, 7, 12]],  # alone: nobody to leave room for
    ]


def test_a_threshold_without_chunks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"threshold=4.*0 when chunked_prefill is off"):
        SchedulerConfig(chunked_prefill=False, long_prefill_token_threshold=4)


def test_the_last_in_line_gives_up_its_blocks_and_begins_again() -> None:
    s = scheduler(5, threshold=4)
    s.add("a", 16)
    s.add("b", 12)
    steps = plan_to_json(Loop(scheduler=s).run())
    assert steps == [
        [["a", 0, 4, 16], ["b", 0, 4, 12]],
        [["a", 4, 4, 16], ["b", 4, 4, 12]],
        [["a", 8, 4, 16]],  # the fifth block; none is left for b
        [["b", 8, 0, 12], ["a", 12, 4, 16]],
        [["b", 0, 8, 12]],
        [["b", 8, 4, 12]],
    ]
    memory = s.memory
    assert memory.preemptions == {"b": 1}
    assert memory.peak_blocks == 5
    assert memory.num_blocks == 5
    assert memory.tables == {"a": (16, 4), "b": (12, 3)}
    assert memory.short_steps > 0


def test_memory_is_taken_only_when_no_step_in_flight_reads_it() -> None:
    s = scheduler(5, threshold=4)
    s.add("a", 16)
    s.add("b", 12)
    flying = [s.schedule() for _ in range(3)]
    assert all(flying)
    for step in flying:
        assert s.schedule() is None, "b's blocks are being read"
        assert step is not None
        s.complete(step.plan)
    after = s.schedule()
    assert after is not None
    assert [e.request_id for e in after.plan.preempted] == ["b"]


def arriving(s: FcfsScheduler, name: str, length: int, *, before: int, priority: int = 0) -> Loop:
    """A loop in which one more prompt arrives before a step."""
    return Loop(
        scheduler=s,
        before_step=lambda i: s.add(name, length, priority=priority) if i == before else None,
    )


def test_a_preempted_prompt_keeps_its_place_in_line() -> None:
    s = scheduler(5, threshold=4)
    s.add("a", 16)
    s.add("b", 12)
    plan = arriving(s, "c", 2, before=1).run()
    assert [e.request_id for step in plan for e in step.preempted] == ["b"]
    starts = [e.request_id for step in plan for e in step.entries if e.start == 0]
    assert starts == ["a", "b", "b", "c"], "c waits behind b"


def test_a_more_urgent_prompt_goes_first_and_takes_the_memory_it_needs() -> None:
    s = scheduler(4)
    s.add("slow", 16)
    assert plan_to_json(arriving(s, "urgent", 12, before=1, priority=-1).run()) == [
        [["slow", 0, 8, 16]],
        [["urgent", 0, 8, 12]],
        [["slow", 8, 0, 16], ["urgent", 8, 4, 12]],
        [["slow", 0, 8, 16]],
        [["slow", 8, 8, 16]],
    ]


def test_slots_are_taken_from_the_last_in_line_too() -> None:
    s = scheduler(16, slots=1, seqs=1)
    s.add("slow", 16)
    assert plan_to_json(arriving(s, "urgent", 4, before=1, priority=-1).run()) == [
        [["slow", 0, 8, 16]],
        [["slow", 8, 0, 16], ["urgent", 0, 4, 4]],
        [["slow", 0, 8, 16]],
        [["slow", 8, 8, 16]],
    ]


@pytest.mark.parametrize("state", ["waiting", "running", "in flight", "preempted"])
def test_an_abort_in_every_state_leaves_nothing_behind(state: str) -> None:
    s = scheduler(5, threshold=4)
    s.add("a", 16)
    s.add("b", 12)
    steps = 0 if state == "waiting" else 4 if state == "preempted" else 1
    for _ in range(steps):
        step = s.schedule()
        assert step is not None
        if state != "in flight":
            s.complete(step.plan)
    s.abort("b")
    s.check_integrity()
    if state == "in flight":
        assert s.complete(step.plan) == ()
    finished: tuple[str, ...] = ()
    while (step := s.schedule()) is not None:
        finished += s.complete(step.plan)
        s.check_integrity()
    assert finished == ("a",) or state == "preempted"
    assert not s.has_work
    pool = s._roster.pool
    assert pool is not None
    assert (pool.num_free, s._roster.slots.num_free) == (5, 8)


def test_what_can_never_fit_is_refused_with_numbers() -> None:
    with pytest.raises(RequestError, match=r"21 tokens.*6 KV blocks of 4.*num_blocks=5.*raise"):
        scheduler(5).add("a", 21)


def test_a_prefix_that_is_there_is_not_computed_again() -> None:
    s = scheduler(16, budget=16)
    s.add("a", 14, prefix=prefix("the same begin"))
    first = s.schedule()
    assert first is not None
    s.add("b", 14, prefix=prefix("the same ahead"))
    s.complete(first.plan)
    second = s.schedule()
    assert second is not None
    assert plan_to_json([second.plan]) == [[["b", 8, 6, 14]]]
    assert second.allocations["b"].blocks[:2] == first.allocations["a"].blocks[:2]
    assert second.allocations["b"].is_new
    assert s.memory.hit_tokens == {"b": 8}


def test_a_prompt_of_the_same_step_finds_nothing_yet() -> None:
    s = scheduler(16, budget=32)
    for name in ("a", "b"):
        s.add(name, 8, prefix=prefix("12345678"))
    assert plan_to_json(Loop(scheduler=s).run()) == [[["a", 0, 8, 8], ["b", 0, 8, 8]]]


def test_the_last_token_is_always_computed() -> None:
    s = scheduler(16, budget=8)
    for name in ("a", "b"):
        s.add(name, 8, prefix=prefix("12345678"))
    assert plan_to_json(Loop(scheduler=s).run())[1] == [["b", 4, 4, 8]]


def test_a_block_that_a_step_begins_behind_is_not_handed_out_in_it() -> None:
    """c grows first, and d's second block has been free longest of all that are left."""
    s = scheduler(5, budget=16)
    s.add("a", 16, prefix=prefix("abcdefgh12345678"))
    s.add("b", 9, prefix=prefix("987654321"))
    s.add("c", 9, prefix=prefix("abcd!!!!!"))
    s.add("d", 10, prefix=prefix("abcdefgh!!"))
    assert plan_to_json(Loop(scheduler=s).run()) == [
        [["a", 0, 16, 16]],
        [["b", 0, 9, 9]],
        [["c", 4, 5, 9], ["d", 8, 2, 10]],
    ]


@pytest.mark.parametrize(
    "other",
    [
        prefix("12345678", readable=False),
        prefix("12345678", salt="hers"),
        prefix("x2345678"),
        Prefix(readable=True),
    ],
    ids=["needs every row", "another salt", "another first token", "outside the cache"],
)
def test_what_may_not_be_shared_is_computed(other: Prefix) -> None:
    s = scheduler(16, budget=9)
    s.add("a", 9, prefix=prefix("123456789"))
    s.add("b", 9, prefix=other)
    assert plan_to_json(Loop(scheduler=s).run())[1] == [["b", 0, 9, 9]]
    assert not any(s.memory.hit_tokens.values())


def test_type_ids_and_the_block_size_are_part_of_the_key() -> None:
    def key(types: tuple[int, ...] = (), size: int = 4) -> str:
        return block_keys([1, 2, 3, 4], types, block_size=size, context="")[0]

    assert len({key(), key((0, 0, 1, 1)), key(size=2), key((1, 1, 1, 1))}) == 4
    assert block_keys([1, 2, 3], (), block_size=4, context="") == ()


def test_a_preempted_prompt_finds_what_is_left_of_itself() -> None:
    s = scheduler(5, threshold=4)
    s.add("a", 16)
    s.add("b", 12, prefix=prefix("abcdefghijkl"))
    steps = plan_to_json(Loop(scheduler=s).run())
    back = next(e for step in steps[4:] for e in step if e[0] == "b")
    assert back[1] > 0, "the last block of b's two was evicted for a, the first was not"
    assert s.memory.hit_tokens["b"] == back[1]


def test_a_plan_with_hits_and_preemptions_is_replayed() -> None:
    def add(s: FcfsScheduler | ReplayScheduler) -> None:
        s.add("a", 16, prefix=prefix("0123456789abcdef"))
        s.add("b", 12, prefix=prefix("0123ijklmnop"))
        s.add("c", 9, prefix=prefix("0123ijkl!"))

    free = scheduler(5, threshold=4)
    add(free)
    plan = Loop(scheduler=free).run()
    assert any(step.preempted for step in plan)
    assert free.memory.hit_tokens
    recorded = plan_from_json(plan_to_json(plan))
    for depth in (1, 3):
        replay = ReplayScheduler(recorded, BlockPool(5, BLOCK), 8)
        add(replay)
        assert Loop(scheduler=replay, depth=depth).run() == plan
        assert replay.memory.hit_tokens == free.memory.hit_tokens
        assert replay.memory.preemptions == free.memory.preemptions
    cold = ReplayScheduler(recorded, BlockPool(5, BLOCK), 8)
    for name, length in (("a", 16), ("b", 12), ("c", 9)):
        cold.add(name, length)
    with pytest.raises(PlanError, match="expected the prefix cache to hold its first"):
        Loop(scheduler=cold).run()

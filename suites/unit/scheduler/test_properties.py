"""What holds for any requests, budgets, arrivals and order of taking results.

Passes wrongly if no drawn traffic ever had two prompts in line at once, or one that is preempted.
Ruled out by suites/meta/test_suites_can_fail.py: `the-last-in-line-goes-first`,
`preemptions-are-not-replayed`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from engine.config import SchedulerConfig
from engine.kv.blocks import BlockPool
from engine.kv.prefix import Prefix, block_keys
from engine.plan import StepPlan, plan_from_json, plan_to_json
from engine.scheduler.base import Scheduler
from engine.scheduler.fcfs import FcfsScheduler
from engine.scheduler.replay import ReplayScheduler
from suites.unit.scheduler.loop import Loop


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A prompt that is added once `after` steps have been scheduled.

    `family`: prompts of one family begin alike, -1 is outside the cache.
    """

    request_id: str
    family: int
    readable: bool
    length: int
    after: int
    priority: int

    @property
    def prefix(self) -> Prefix:
        if self.family < 0:
            return Prefix()
        tokens = [self.family] * self.length
        keys = block_keys(tokens, (), block_size=BLOCK_SIZE, context="")
        return Prefix(keys=keys, readable=self.readable)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Arrivals and limits under which every one of them can run."""

    arrivals: tuple[Arrival, ...]
    config: SchedulerConfig
    can_chunk: bool
    num_blocks: int | None
    max_slots: int

    @property
    def chunked(self) -> bool:
        return self.can_chunk and self.config.chunked_prefill is not False

    def pool(self) -> BlockPool | None:
        return None if self.num_blocks is None else BlockPool(self.num_blocks, BLOCK_SIZE)

    def scheduler(self) -> FcfsScheduler:
        return FcfsScheduler(self.config, self.pool(), self.max_slots, self.can_chunk)

    def arrive_on(self, scheduler: Scheduler) -> Callable[[int], None]:
        """Adds what arrives before the step of a given index."""

        def before_step(index: int) -> None:
            for arrival in self.arrivals:
                if arrival.after == index:
                    scheduler.add(
                        arrival.request_id,
                        arrival.length,
                        priority=arrival.priority,
                        prefix=arrival.prefix,
                    )

        return before_step


BLOCK_SIZE = 4
MAX_LENGTH = 24


@st.composite
def traffics(draw: st.DrawFn) -> Traffic:
    # Three in four may be cut, and pools are short more often than not: else few are preempted.
    can_chunk = draw(st.sampled_from([True, True, True, False]))
    chunked = draw(st.sampled_from([None, True, True, False]))
    whole = not can_chunk or chunked is False
    budget = draw(st.integers(min_value=1, max_value=MAX_LENGTH))
    lengths = draw(
        st.lists(
            # Around the budget, where splitting and waiting begin, as often as anywhere.
            st.one_of(
                st.integers(min_value=1, max_value=MAX_LENGTH),
                st.sampled_from([budget - 1, budget, budget + 1]),
            ).map(lambda n: max(1, min(n, budget if whole else MAX_LENGTH))),
            min_size=3,
            max_size=8,
        )
    )
    arrivals = tuple(
        Arrival(
            request_id=f"r{i}",
            family=draw(st.integers(min_value=-1, max_value=1)),
            readable=draw(st.booleans()),
            length=length,
            after=draw(st.integers(min_value=0, max_value=3)) if i else 0,
            priority=draw(st.integers(min_value=0, max_value=1)),
        )
        for i, length in enumerate(lengths)
    )
    enough = -(-max(lengths) // BLOCK_SIZE)
    return Traffic(
        arrivals=arrivals,
        config=SchedulerConfig(
            max_num_batched_tokens=budget,
            max_num_seqs=draw(st.integers(min_value=1, max_value=4)),
            chunked_prefill=chunked,
            long_prefill_token_threshold=0 if whole else draw(st.sampled_from([0, 1, 3, 5])),
        ),
        can_chunk=can_chunk,
        num_blocks=draw(st.sampled_from([enough, enough + 1, enough + 2, 3 * enough, None])),
        max_slots=draw(st.integers(min_value=1, max_value=5)),
    )


def run(traffic: Traffic, *, depth: int = 1, choices: tuple[bool, ...] = ()) -> Loop:
    """Runs the traffic; what would arrive after the last step never does."""
    scheduler = traffic.scheduler()
    loop = Loop(
        scheduler=scheduler,
        depth=depth,
        choices=iter(choices),
        before_step=traffic.arrive_on(scheduler),
    )
    loop.run()
    return loop


depths = st.integers(min_value=1, max_value=4)
orders = st.lists(st.booleans(), max_size=40).map(tuple)


def pieces(plan: tuple[StepPlan, ...]) -> dict[str, list[list[tuple[int, int, int]]]]:
    """Request id -> each of its attempts -> its pieces; all attempts but the last were lost."""
    attempts: dict[str, list[list[tuple[int, int, int]]]] = defaultdict(list)
    lost: set[str] = set()
    for step in plan:
        lost |= {entry.request_id for entry in step.preempted}
        for entry in step.entries:
            name = entry.request_id
            if name in lost or name not in attempts:
                attempts[name].append([])
                lost.discard(name)
            attempts[name][-1].append((entry.start, entry.end, entry.total))
    assert not lost, "a preempted request never came back"
    return attempts


@given(traffic=traffics(), depth=depths, choices=orders)
def test_every_token_in_order_within_the_limits(
    traffic: Traffic, depth: int, choices: tuple[bool, ...]
) -> None:
    loop = run(traffic, depth=depth, choices=choices)
    plan = tuple(step.plan for step in loop.steps)
    assert [step.index for step in plan] == list(range(len(plan)))
    arrivals = {a.request_id: a for a in traffic.arrivals}
    by_request = pieces(plan)
    assert sorted(loop.finished) == sorted(by_request)
    assert {a.request_id for a in traffic.arrivals if a.after == 0} <= set(by_request)
    memory = loop.scheduler.memory
    for request_id, attempts in by_request.items():
        arrival = arrivals[request_id]
        for parts in attempts:
            starts, ends, totals = zip(*parts, strict=True)
            assert starts[1:] == ends[:-1]
            assert set(totals) == {arrival.length}
            assert starts[0] % BLOCK_SIZE == 0
            assert not starts[0] or arrival.readable
            assert parts is not attempts[-1] or ends[-1] == arrival.length
        assert traffic.chunked or len(attempts) == len(attempts[0]) == 1
        assert memory.preemptions.get(request_id, 0) == len(attempts) - 1
        assert memory.hit_tokens.get(request_id, 0) == sum(a[0][0] for a in attempts)
    for step in plan:
        assert 1 <= len(step.entries) <= traffic.config.max_num_seqs
        assert 1 <= step.num_tokens <= traffic.config.max_num_batched_tokens
    for step in loop.steps:
        for entry in step.plan.entries:
            allocation = step.allocations[entry.request_id]
            assert 0 <= allocation.slot < traffic.max_slots
            needed = 0 if traffic.num_blocks is None else -(-entry.end // BLOCK_SIZE)
            assert len(allocation.blocks) == needed


@given(traffic=traffics(), depth=depths, choices=orders)
def test_every_step_brings_the_head_of_the_line_forward(
    traffic: Traffic, depth: int, choices: tuple[bool, ...]
) -> None:
    """So preemption can never go round in circles: the run is as long as the line, at most."""
    loop = run(traffic, depth=depth, choices=choices)
    left = {a.request_id: (a.priority, a.after, i) for i, a in enumerate(traffic.arrivals)}
    for step in loop.steps:
        here = {n: rank for n, rank in left.items() if rank[1] <= step.plan.index}
        served = {e.request_id for e in step.plan.entries}
        assert not here or min(here, key=lambda n: here[n]) in served
        assert not {e.request_id for e in step.plan.preempted} & served
        for entry in step.plan.entries:
            if entry.finishes:
                left.pop(entry.request_id, None)


@given(traffic=traffics())
def test_nothing_starves(traffic: Traffic) -> None:
    """A request starts no later than every one that was there, no more urgent, when it came."""
    plan = tuple(step.plan for step in run(traffic).steps)
    started: list[str] = []
    for step in plan:
        started += [e.request_id for e in step.entries if e.request_id not in started]
    arrivals = {a.request_id: (a.after, i, a.priority) for i, a in enumerate(traffic.arrivals)}
    for position, later in enumerate(started):
        for earlier in started[:position]:
            after_e, index_e, priority_e = arrivals[earlier]
            after_l, index_l, priority_l = arrivals[later]
            overtook = (after_e, index_e) > (after_l, index_l) and priority_e >= priority_l
            assert not overtook, f"{earlier} overtook {later}"


@given(traffic=traffics(), depth=depths, choices=orders)
def test_the_plan_does_not_depend_on_when_results_are_taken(
    traffic: Traffic, depth: int, choices: tuple[bool, ...]
) -> None:
    in_step = [step.plan for step in run(traffic).steps]
    assert [step.plan for step in run(traffic, depth=depth, choices=choices).steps] == in_step


@given(traffic=traffics(), depth=depths, choices=orders)
def test_replaying_a_free_plan_gives_the_plan(
    traffic: Traffic, depth: int, choices: tuple[bool, ...]
) -> None:
    plan = tuple(step.plan for step in run(traffic).steps)
    recorded = plan_from_json(plan_to_json(plan))
    replay = ReplayScheduler(recorded, traffic.pool(), traffic.max_slots)
    ran = pieces(plan)
    for arrival in reversed(traffic.arrivals):
        if arrival.request_id in ran:
            replay.add(arrival.request_id, arrival.length, prefix=arrival.prefix)
    loop = Loop(scheduler=replay, depth=depth, choices=iter(choices))
    assert loop.run() == plan


@given(traffic=traffics(), depth=depths, choices=orders, data=st.data())
def test_aborts_leave_nothing_behind(
    traffic: Traffic, depth: int, choices: tuple[bool, ...], data: st.DataObject
) -> None:
    victims: set[str] = data.draw(
        st.sets(st.sampled_from([a.request_id for a in traffic.arrivals]))
    )
    after = data.draw(st.integers(min_value=0, max_value=3))
    scheduler = traffic.scheduler()
    arrive = traffic.arrive_on(scheduler)
    in_flight: list[StepPlan] = []
    finished: list[str] = []
    order = iter(choices)
    aborted: set[str] | None = None
    steps = 0
    arrive(0)
    while scheduler.has_work:
        step = None
        if len(in_flight) < depth and not (in_flight and next(order, False)):
            step = scheduler.schedule()
        if step is not None:
            in_flight.append(step.plan)
            steps += 1
            arrive(steps)
        else:
            assert in_flight, "stuck"
            finished += scheduler.complete(in_flight.pop(0))
        if steps == after and aborted is None:
            aborted = victims - set(finished)
            for victim in sorted(aborted):
                scheduler.abort(victim)
        scheduler.check_integrity()
    assert not in_flight
    late = {a.request_id for a in traffic.arrivals if a.after > after}
    assert not set(finished) & ((aborted or set()) - late)
    roster = scheduler._roster
    assert roster.slots.num_free == traffic.max_slots
    assert roster.pool is None or roster.pool.num_free == traffic.num_blocks
    assert roster.pool is None or not roster.pool.pinned
    assert len(finished) == len(set(finished))

"""How much memory there is, how it is cut up and what is kept in it changes no answer.

The same plan gives the same bits; another plan gives them in batch-invariant arithmetic, where
chunks, company, preemptions and cached prefixes may change no bit.

Passes wrongly if no prompt ever read a block that another's could be mistaken for. Ruled out by
suites/meta/test_suites_can_fail.py: `all-prefixes-of-a-length-are-one`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.engine import RunResult
from engine.errors import PlanError
from engine.request import PoolingRequest, Task
from harness.checkpoints.catalogue import path_of
from suites.figures import show
from suites.parity.fleet import differing
from suites.parity.memory import Engines, Memory, requests

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

LENGTHS = (96, 70, 40, 55, 81, 17)
SHARED = 36
BOTH = (Task.EMBED, Task.TOKEN_EMBED)


@pytest.fixture(scope="module")
def engines() -> Engines:
    return Engines(path_of("tiny-qwen3"), batch_invariant=True)


@pytest.fixture(scope="module")
def mixed() -> tuple[PoolingRequest, ...]:
    return requests(LENGTHS, shared=SHARED, tasks=BOTH)


def run(
    engines: Engines,
    asked: tuple[PoolingRequest, ...],
    memory: Memory,
    plan: RunResult | None = None,
) -> RunResult:
    with engines.open(memory) as engine:
        result = engine.run(asked, plan=None if plan is None else plan.plan)
    assert not result.refused, result.refused
    assert not result.witness.hazards, result.witness.hazards
    # A tight pool holds steps back, but not every one.
    assert result.witness.lookahead >= int(memory.asynchronous)
    return result


@pytest.fixture(scope="module")
def ample(engines: Engines, mixed: tuple[PoolingRequest, ...]) -> RunResult:
    return run(engines, mixed, Memory())


@pytest.mark.parametrize(
    "small",
    [
        Memory(num_blocks=8),
        Memory(num_blocks=100, block_size=1),
        Memory(num_blocks=8, prefix_cache=True),
    ],
    ids=str,
)
def test_preempted_prompts_give_the_bits_of_an_ample_pool(
    engines: Engines, mixed: tuple[PoolingRequest, ...], ample: RunResult, small: Memory
) -> None:
    found = run(engines, mixed, small)
    memory = found.witness.memory
    show(
        f"{small.num_blocks} blocks of {small.block_size}, prefix cache {small.prefix_cache}",
        ("preemptions", "peak blocks", "hit tokens", "evictions", "steps"),
        [
            (
                sum(memory.preemptions.values()),
                memory.peak_blocks,
                sum(memory.hit_tokens.values()),
                memory.evictions,
                len(found.plan),
            )
        ],
    )
    assert sum(memory.preemptions.values()) > 0
    assert memory.peak_blocks <= memory.num_blocks == small.num_blocks
    assert ample.witness.memory.preemptions == {}
    assert ample.witness.memory.short_steps == 0
    assert memory.short_steps > 0
    assert differing(ample, found) == []


@pytest.mark.parametrize(
    "way",
    [
        Memory(asynchronous=True),
        Memory(stages=2),
        Memory(asynchronous=True, stages=2, inputs="ring"),
        Memory(asynchronous=True, policy="lag(compute@last)", inputs="ring"),
        Memory(stages=2, policy="threaded"),
    ],
    ids=str,
)
def test_a_plan_with_preemptions_and_hits_is_the_same_everywhere(
    engines: Engines, mixed: tuple[PoolingRequest, ...], way: Memory
) -> None:
    """Scheduled freely with other stages and steps in flight, and replayed."""
    plain = run(engines, mixed, Memory(num_blocks=8, prefix_cache=True, max_num_seqs=2))
    small = replace(way, num_blocks=8, prefix_cache=True, max_num_seqs=2)
    if way.policy != "lag(copy@last)":
        small = replace(small, asynchronous=False)
    assert plain.witness.memory.preemptions
    assert any(plain.witness.memory.hit_tokens.values())
    free = run(engines, mixed, small)
    assert free.plan == plain.plan
    replayed = run(engines, mixed, small, plain)
    assert replayed.plan == plain.plan
    assert differing(plain, free) == differing(plain, replayed) == []


@pytest.mark.parametrize("block_size", [1, 8, 16, 64])
def test_the_block_size_changes_no_bit_of_the_same_plan(
    engines: Engines, mixed: tuple[PoolingRequest, ...], ample: RunResult, block_size: int
) -> None:
    found = run(engines, mixed, Memory(block_size=block_size), ample)
    tables = found.witness.memory.tables
    assert tables == {f"r{i}": (n, -(-n // block_size)) for i, n in enumerate(LENGTHS)}
    assert found.witness.plan_digest == ample.witness.plan_digest
    assert differing(ample, found) == []


def test_only_answers_of_the_last_row_read_the_cache(
    engines: Engines, mixed: tuple[PoolingRequest, ...], ample: RunResult
) -> None:
    cached = run(engines, mixed, Memory(prefix_cache=True))
    hits = cached.witness.memory.hit_tokens
    assert set(hits) <= {r.request_id for r in mixed if r.task is Task.EMBED}
    assert sum(hits.values()) >= 32
    assert all(n % 16 == 0 for n in hits.values())
    assert cached.plan != ample.plan
    assert differing(ample, cached) == []


def test_a_salt_keeps_two_callers_apart(engines: Engines) -> None:
    same = requests((40, 40), shared=40)
    with engines.open(Memory(prefix_cache=True)) as engine:
        shared = engine.run(same, arrivals=(0, 3)).witness.memory.hit_tokens
        apart = engine.run(
            (same[0], replace(same[1], cache_salt="mine")), arrivals=(0, 3)
        ).witness.memory.hit_tokens
        both = engine.run(
            tuple(replace(r, cache_salt="ours") for r in same), arrivals=(0, 3)
        ).witness.memory.hit_tokens
    assert sum(shared.values()) == sum(both.values()) == 32
    assert not any(apart.values())
    with engines.open(Memory()) as engine:
        refused = engine.run((replace(same[0], cache_salt="mine"), same[1])).refused
    assert "turn prefix_cache on" in refused["r0"]
    assert set(refused) == {"r0"}


def test_a_plan_with_hits_needs_the_cache(
    engines: Engines, mixed: tuple[PoolingRequest, ...]
) -> None:
    cached = run(engines, mixed, Memory(prefix_cache=True))
    with pytest.raises(PlanError, match="replay with the prefix_cache"):
        run(engines, mixed, Memory(), cached)


def test_priorities_decide_who_waits(engines: Engines) -> None:
    asked = requests((30, 30, 30))
    asked = (asked[0], asked[1], replace(asked[2], priority=-1))
    with engines.open(Memory(max_num_seqs=1)) as engine:
        plan = engine.run(asked, arrivals=(0, 0, 1)).plan
    order = [e.request_id for step in plan for e in step.entries if e.finishes]
    assert order == ["r2", "r0", "r1"]

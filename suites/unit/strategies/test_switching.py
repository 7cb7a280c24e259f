"""Cases for covering arrays: prompts that press a small pool, begin alike, and end short.

Passes wrongly if prompts of any length would do. Ruled out by
suites/meta/test_suites_can_fail.py: `long-prompts-of-any-length`.
"""

from __future__ import annotations

import pytest

from harness.axes.memory import blocks, small_pool
from harness.case import Case
from harness.strategies import CaseSpace, Edges, boundaries_of
from harness.strategies.draw import draw_switching
from harness.strategies.switching import PAIRS, STEPS_OF_SHORT

SPACES = [
    CaseSpace(
        tasks=("embed", "token_embed", "score"),
        vocab_size=997,
        edges=Edges(chunk=chunk, budget=chunk, block_size=16, max_len=320),
        dimensions=(8,),
    )
    for chunk in (16, 32, 64)
]


def lengths(case: Case) -> list[int]:
    return [len(prompt.tokens or ()) for prompt in case.prompts]


@pytest.mark.parametrize("space", SPACES, ids=lambda s: f"chunk {s.edges.chunk}")
def test_memory_is_short_steps_overlap_and_beginnings_are_shared(space: CaseSpace) -> None:
    by_ids = [case for case in draw_switching(space, 60, seed=3) if case.task != "score"]
    size = space.edges.block_size
    for case in by_ids:
        first, second, _, _, *short = lengths(case)
        there = small_pool(lengths(case), size)
        assert first > space.edges.chunk, "a chunked cell splits it"
        least = min(blocks(first, size), blocks(second, size))
        assert 2 * least > there, "even chunk by chunk, one of the two waits"
        begins = case.prompts[0].tokens or ()
        for prompt in case.prompts[2:4]:
            alike = sum(1 for _ in _common(begins, prompt.tokens or ()))
            assert size < alike < len(prompt.tokens or ()), "a full block, and then something else"
        assert len(short) == STEPS_OF_SHORT * space.max_num_seqs
        assert sum(blocks(n, size) for n in short) <= there, "steps of short ones fit together"
        assert not any(n % size for n in short), "no block is filled in part"


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> list[int]:
    found = []
    for mine, other in zip(a, b, strict=False):
        if mine != other:
            break
        found.append(mine)
    return found


def test_tasks_take_turns_and_pairs_are_enough_for_three_steps() -> None:
    drawn = draw_switching(SPACES[0], 10, seed=0)
    turn = ["embed", "token_embed", "embed", "token_embed", "score"]
    assert [case.task for case in drawn] == turn * 2
    assert {len(case.prompts) for case in drawn if case.task == "score"} == {PAIRS}
    assert drawn == draw_switching(SPACES[0], 10, seed=0)
    assert drawn != draw_switching(SPACES[0], 10, seed=1)


def test_long_prompts_lie_at_boundaries() -> None:
    space = SPACES[0]
    hit: set[str] = set()
    for case in draw_switching(space, 60, seed=1):
        if case.task != "score":
            hit.update(boundaries_of(lengths(case)[:2], space.edges))
    assert {f"length = {n} mod chunk" for n in ("0", "1", "chunk-1")} <= hit

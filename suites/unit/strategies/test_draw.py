"""A seed means the same cases everywhere.

Passes wrongly if a draw did not depend on its seed. Ruled out by
suites/meta/test_suites_can_fail.py: `every-seed-is-the-first`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st

from harness.case import Case, Prompt
from harness.strategies import (
    CaseSpace,
    Edges,
    SeedError,
    boundaries_of,
    cases,
    draw_cases,
    draw_each,
    draw_one,
)

ROOT = Path(__file__).resolve().parents[3]
SPACE = CaseSpace(
    tasks=("embed", "score", "token_embed"),
    vocab_size=97,
    edges=Edges(chunk=8, budget=32, block_size=8, max_len=40),
)
FRESH = """
import sys, json, decimal, email, harness.judge  # other modules than under pytest
sys.path.insert(0, "")
from suites.unit.strategies.test_draw import SPACE, digest
from harness.strategies import draw_cases
print(digest(draw_cases(SPACE, 12, seed=3)))
"""


def digest(drawn: list[Case]) -> str:
    return hashlib.sha256("".join(case.case_id for case in drawn).encode()).hexdigest()


def test_a_seed_draws_the_same_cases_in_another_process() -> None:
    fresh = subprocess.run(
        [sys.executable, "-c", FRESH],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert fresh.stdout.strip() == digest(draw_cases(SPACE, 12, seed=3))


def test_seeds_differ_and_a_longer_draw_starts_with_the_shorter() -> None:
    ten = draw_cases(SPACE, 10, seed=0)
    assert draw_cases(SPACE, 14, seed=0)[:10] == ten
    assert digest(draw_cases(SPACE, 10, seed=1)) != digest(ten)


def test_every_declared_class_is_hit_and_cases_are_distinct() -> None:
    count = 3 * len(SPACE.classes) // 2 + 1  # a third are pairs, whose length is not aimed at
    drawn = draw_cases(SPACE, count, seed=9)
    assert len({case.case_id for case in drawn}) == count
    hit: set[str] = set()
    for case in drawn:
        lengths = [len(p.tokens) for p in case.prompts if p.tokens is not None]
        hit.update(boundaries_of(lengths, SPACE.edges, case.prompts))
    assert hit >= set(SPACE.classes)
    assert {case.task for case in drawn} == set(SPACE.tasks)


def test_pair_tasks_alone_can_be_drawn() -> None:
    space = CaseSpace(tasks=("score",), vocab_size=97, edges=SPACE.edges)
    assert len(draw_cases(space, 5, seed=0)) == 5


def test_a_draw_is_not_hypothesis_simplest_case() -> None:
    drawn = [draw_one(cases(SPACE, task="embed"), str(seed)) for seed in range(3)]
    assert len({case.case_id for case in drawn}) == 3


def test_too_small_a_space_says_so() -> None:
    only = st.just(Case(task="embed", prompts=(Prompt(text="a"),)))
    with pytest.raises(SeedError, match="drew no case"):
        draw_one(only, "0")
    two = st.sampled_from(("a", "b")).map(
        lambda text: Case(task="embed", prompts=(Prompt(text=text),))
    )
    assert len(draw_each([two], 2, 0)) == 2
    with pytest.raises(SeedError, match="drew 2 distinct cases of 3"):
        draw_each([two], 3, 0)

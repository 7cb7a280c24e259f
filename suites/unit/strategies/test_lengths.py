"""One table names, draws and recognises boundary classes.

Passes wrongly if a length counted for every class. Ruled out by
suites/meta/test_suites_can_fail.py: `every-length-is-of-every-class`.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.strategies.lengths import (
    LENGTH_CLASSES,
    Edges,
    boundaries_of,
    candidates,
    length_classes,
)

EDGES = Edges(chunk=16, budget=64, block_size=8, max_len=100)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, {"one token"}),
        (16, {"one chunk", "length = 0 mod block"}),
        (17, {"length = 1 mod chunk", "length = 1 mod block"}),
        (31, {"length = chunk-1 mod chunk", "length = block-1 mod block", "length = 31"}),
        (32, {"length = 0 mod chunk", "length = 0 mod block", "length = 32"}),
        (
            33,
            {"length = 1 mod chunk", "length = 1 mod block", "length = 33", "three chunks or more"},
        ),
        (
            63,
            {
                "length < budget",
                "length = chunk-1 mod chunk",
                "length = block-1 mod block",
                "three chunks or more",
            },
        ),
        (
            64,
            {
                "length = budget",
                "length = 0 mod chunk",
                "length = 0 mod block",
                "three chunks or more",
            },
        ),
        (
            65,
            {
                "length > budget",
                "length = 1 mod chunk",
                "length = 1 mod block",
                "three chunks or more",
            },
        ),
        (99, {"near the maximum", "three chunks or more"}),
        (100, {"near the maximum", "three chunks or more"}),
    ],
)
def test_a_length_belongs_to_its_classes(length: int, expected: set[str]) -> None:
    assert set(boundaries_of([length], EDGES)) == expected


def test_prompts_taken_together() -> None:
    assert "equal lengths" in boundaries_of([5, 5], EDGES)
    assert "duplicate prompts" not in boundaries_of([5, 5], EDGES, ["a", "b"])
    assert "duplicate prompts" in boundaries_of([5, 5], EDGES, ["a", "a"])
    assert "one chunk beside three" in boundaries_of([5, 50], EDGES)
    assert "one chunk beside three" not in boundaries_of([5, 20], EDGES)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 80), st.integers(1, 20), st.integers(1, 120))
def test_every_candidate_is_recognised_and_in_range(
    chunk: int, budget: int, block: int, longest: int
) -> None:
    edges = Edges(chunk=chunk, budget=budget, block_size=block, max_len=longest)
    for name in LENGTH_CLASSES:
        for length in candidates(name, edges):
            assert 1 <= length <= longest
            assert name in boundaries_of([length], edges)
    assert set(length_classes(edges)) == {n for n in LENGTH_CLASSES if candidates(n, edges)}


def test_a_class_that_cannot_occur_is_not_declared() -> None:
    short = Edges(chunk=16, budget=64, block_size=8, max_len=20)
    assert "three chunks or more" not in length_classes(short)
    assert "length = budget" not in length_classes(short)
    assert "length = 31" not in length_classes(short)


def test_an_edge_below_one_token_is_refused() -> None:
    with pytest.raises(ValueError, match="chunk=0 must be at least 1 token"):
        Edges(chunk=0, budget=1, block_size=1, max_len=1)

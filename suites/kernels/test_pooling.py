"""Tile sums, means and late interaction.

Passes wrongly if the reference's bits did not depend on the order of a sum, or the bound on every
token. Ruled out by `test_another_order_and_a_lost_token_are_seen`.
"""

from __future__ import annotations

from itertools import accumulate

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.max_sim import max_sim, max_sim_reference
from engine.kernels.segment_mean import (
    TILE,
    segment_mean,
    segment_mean_reference,
    segment_sums,
)
from suites.kernels.errors import within
from suites.kernels.where import DEVICE, DTYPES, EXAMPLES, bound, draw, error

FULL = DEVICE == "cuda"
RUNS = st.lists(
    st.integers(0, 400 if FULL else 70) | st.sampled_from([0, 1, TILE - 1, TILE, TILE + 1]),
    min_size=1,
    max_size=4,
)
DTYPE = st.sampled_from(DTYPES)


def offsets_of(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([0, *accumulate(lengths)], device=DEVICE)


@settings(max_examples=EXAMPLES)
@given(lengths=RUNS, width=st.sampled_from([5, 64, 70]), dtype=DTYPE)
def test_means_have_the_bits_of_the_reference(
    lengths: list[int], width: int, dtype: torch.dtype
) -> None:
    rows = draw(sum(lengths), width, dtype=dtype, seed=width)
    offsets = offsets_of(lengths)
    found, exact = segment_mean(rows, offsets), segment_mean_reference(rows, offsets)
    assert torch.equal(found, exact)
    assert within("segment_mean", dtype, found, exact, 0.0)


def test_another_order_and_a_lost_token_are_seen() -> None:
    """The same rows summed from the last to the first, and a document without its last token."""
    rows = draw(2 * TILE + 7, 64, dtype=torch.float32, seed=9)
    offsets = offsets_of([len(rows)])
    assert not torch.equal(
        segment_mean(rows.flip(0), offsets), segment_mean_reference(rows, offsets)
    )
    # Each of as many query rows asks for one token, so that every token counts.
    found = max_sim(rows, rows[:-1].contiguous(), offsets_of([len(rows) - 1]))
    exact = max_sim_reference(rows.double(), rows.double(), offsets)
    assert error(found, exact) > bound(torch.float32)


@settings(max_examples=EXAMPLES)
@given(tiles=st.integers(1, 3), rest=st.integers(0, TILE - 1), dtype=DTYPE)
def test_a_run_cut_between_tiles_has_the_same_bits(
    tiles: int, rest: int, dtype: torch.dtype
) -> None:
    length, cut = tiles * TILE + rest, TILE * (tiles // 2 + 1 if rest else tiles // 2)
    rows = draw(length, 8, dtype=dtype, seed=length)
    whole = segment_sums(rows, offsets_of([length]))
    first = segment_sums(rows[:cut], offsets_of([cut]))
    assert torch.equal(segment_sums(rows[cut:], offsets_of([length - cut]), first), whole)


@settings(max_examples=EXAMPLES)
@given(lengths=RUNS, query=st.integers(1, 40), width=st.sampled_from([16, 48, 70]), dtype=DTYPE)
def test_max_sim(lengths: list[int], query: int, width: int, dtype: torch.dtype) -> None:
    tokens = draw(sum(lengths), width, dtype=dtype, seed=query)
    asked, offsets = draw(query, width, dtype=dtype, seed=width), offsets_of(lengths)
    found = max_sim(asked, tokens, offsets)
    exact = max_sim_reference(asked.double(), tokens.double(), offsets)
    assert within("max_sim", dtype, found, exact, bound(torch.float32))
    alone = max_sim(asked, tokens[: lengths[0]].clone(), offsets_of(lengths[:1]))
    assert torch.equal(alone, found[:1])

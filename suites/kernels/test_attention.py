"""Paged attention: against the written-out specification, and bit by bit against itself.

Passes wrongly if the bound was so wide that one key more or less is within it. Ruled out by
`test_one_key_more_is_beyond_every_bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.attention import paged_attention
from suites.kernels.errors import within
from suites.kernels.where import DEVICE, DTYPES, EXAMPLES, bound, draw, error

KV_HEADS = 2
FULL = DEVICE == "cuda"


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Pieces (start, rows) of prompts, with keys and values of everything up to their ends."""

    pieces: tuple[tuple[int, int], ...]
    dtype: torch.dtype
    head_dim: int
    heads: int
    block_size: int
    window: int
    causal: bool
    seed: int

    def run(self, backend: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """-> [T, H * d]. A causal batch finds the earlier keys in the cache."""
        dtype = dtype or self.dtype
        longest = max(start + rows for start, rows in self.pieces)
        columns = -(-longest // self.block_size)
        blocks = len(self.pieces) * columns
        tables = torch.randperm(blocks, generator=torch.Generator().manual_seed(self.seed))
        tables = tables.view(len(self.pieces), columns).to(DEVICE)
        cache = blocks * self.block_size

        def rows(index: int, count: int, heads: int, kind: int) -> torch.Tensor:
            seed = 1000 * self.seed + 10 * index + kind
            return draw(count, heads, self.head_dim, dtype=self.dtype, seed=seed).to(dtype)

        caches = [
            torch.zeros(cache, KV_HEADS, self.head_dim, dtype=dtype, device=DEVICE) for _ in "kv"
        ]
        parts: list[list[torch.Tensor]] = [[], [], []]
        slots = []
        for index, (start, count) in enumerate(self.pieces):
            positions = torch.arange(start + count, device=DEVICE)
            at = tables[index, positions // self.block_size] * self.block_size
            at = at + positions % self.block_size
            slots.append(at[start:])
            parts[0].append(rows(index, start + count, self.heads, 0)[start:])
            for kind in (1, 2):
                whole = rows(index, start + count, KV_HEADS, kind)
                parts[kind].append(whole[start:])
                caches[kind - 1][at[:start]] = whole[:start]
        with torch.inference_mode():
            out: torch.Tensor = paged_attention(
                *(torch.cat(part) for part in parts),
                *caches,
                torch.tensor([0, *accumulate(n for _, n in self.pieces)], device=DEVICE),
                torch.tensor([start for start, _ in self.pieces], device=DEVICE),
                tables,
                torch.cat(slots),
                self.block_size,
                self.head_dim**-0.5,
                self.causal,
                self.window,
                backend,
                batch_invariant=False,
            )
        return out


@st.composite
def batches(draw_: st.DrawFn) -> Batch:
    """Lengths around the edges of tiles, of blocks and of nothing."""
    causal = draw_(st.booleans())
    longest = 300 if FULL else 40
    edges = st.sampled_from([1, 2, 15, 16, 17, 31, 32, 33, *([63, 64, 65, 128, 129] * FULL)])
    start = st.just(0) if not causal else st.integers(0, longest) | edges
    pieces = st.lists(st.tuples(start, st.integers(1, longest) | edges), min_size=1, max_size=3)
    return Batch(
        pieces=tuple(draw_(pieces)),
        dtype=draw_(st.sampled_from(DTYPES)),
        head_dim=draw_(st.sampled_from([16, 24, 64, 96, 128] if FULL else [16, 24])),
        heads=KV_HEADS * draw_(st.sampled_from([1, 2])),
        block_size=draw_(st.sampled_from([4, 16])),
        window=draw_(st.sampled_from([0, 1, 5, 33, 2**31 - 1])),
        causal=causal,
        seed=draw_(st.integers(0, 5)),
    )


@settings(max_examples=EXAMPLES)
@given(batch=batches())
def test_it_computes_what_the_specification_does(batch: Batch) -> None:
    found = batch.run("triton")
    exact = batch.run("naive", torch.float64)
    assert within("attention", batch.dtype, found, exact, bound(batch.dtype))
    assert found.dtype == batch.dtype


def test_one_key_more_is_beyond_every_bound() -> None:
    """A window that is one too wide: what the comparison above must see, in any dtype."""
    for dtype in DTYPES:
        right, wide = (
            Batch(
                pieces=((33, 17),),
                dtype=dtype,
                head_dim=16,
                heads=KV_HEADS,
                block_size=4,
                window=window,
                causal=True,
                seed=0,
            )
            for window in (33, 34)
        )
        assert error(wide.run("triton"), right.run("naive", torch.float64)) > bound(dtype)


@settings(max_examples=EXAMPLES)
@given(batch=batches(), data=st.data())
def test_a_piece_alone_has_the_bits_it_has_in_the_batch(batch: Batch, data: st.DataObject) -> None:
    """Neither the company nor the start of a chunk changes a bit of a row."""
    start, rows = batch.pieces[0]
    whole = batch.run("triton")[:rows]
    first = data.draw(st.integers(0, rows - 1)) if batch.causal else 0
    count = data.draw(st.integers(1, rows - first)) if batch.causal else rows
    piece = Batch(
        pieces=((start + first, count),),
        dtype=batch.dtype,
        head_dim=batch.head_dim,
        heads=batch.heads,
        block_size=batch.block_size,
        window=batch.window,
        causal=batch.causal,
        seed=batch.seed,
    )
    # The first `rows` of a seed's numbers are the same however many are drawn.
    longest = start + rows
    assert count <= longest
    assert torch.equal(piece.run("triton"), whole[first : first + count])


@pytest.mark.parametrize("window", [0, 40])
@pytest.mark.parametrize("cut", [7, 33])
def test_where_a_chunk_begins_changes_no_bit(cut: int, window: int) -> None:
    """Some eighty keys, so that sums run over three tiles of the smallest size."""

    def piece(start: int) -> torch.Tensor:
        return Batch(
            pieces=((start, 80 - start),),
            dtype=torch.float32,
            head_dim=16,
            heads=KV_HEADS,
            block_size=16,
            window=window,
            causal=True,
            seed=0,
        ).run("triton")

    assert torch.equal(piece(cut), piece(0)[cut:])


@pytest.mark.parametrize("causal", [True, False])
def test_rows_of_no_sequence_are_zero_and_stale_offsets_stay_inside(*, causal: bool) -> None:
    heads, dim, block = 4, 16, 4
    q, k, v = (draw(9, n, dim, dtype=torch.float32, seed=n) for n in (heads, 2, 2))
    cache = [draw(24, 2, dim, dtype=torch.float32, seed=s) for s in (7, 8)]
    for offsets in ([0, 5, 7], [3, 1, 2**40], [-4, 2, 2], [9, 9, 30]):
        with torch.inference_mode():
            out = paged_attention(
                *(q, k, v, *cache),
                torch.tensor(offsets, device=DEVICE),
                torch.tensor([-3, 2**40], device=DEVICE),
                torch.tensor([[4, 1], [-7, 2**40]], device=DEVICE),
                torch.tensor([16, 17, -1, 2**40, 4, 3, 12, 0, 1], device=DEVICE),
                *(block, 0.25, causal, 0, "triton", False),
            )
        assert bool(torch.isfinite(out).all())
        kept = [min(max(offset, 0), 9) for offset in offsets]
        covered = {r for a, b in pairwise(kept) for r in range(a, b)}
        assert not out[[r for r in range(9) if r not in covered]].any()

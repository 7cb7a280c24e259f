"""The paged operator: layout, masks, and behaviour under stale device data.

Passes wrongly if masks and windows made no difference to the numbers that are drawn. Ruled out by
suites/meta/test_suites_can_fail.py: `rows-see-what-comes-after-them`, `windows-are-not-looked-at`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.attention import BACKENDS, BATCH_BACKENDS, backend, paged_attention
from engine.config import ATTENTION_BACKENDS
from engine.errors import ConfigurationError

HEADS, KV_HEADS, WIDTH, BLOCK = 4, 2, 8, 4
SCALE = 0.5
"""Not the usual WIDTH ** -0.5, so that a backend that ignores it is seen."""
DEVICE_DATA = st.integers(-3, 9) | st.integers(-3, 2**40)
"""Mostly what a batch of seven rows could hold, and now and then anything at all."""


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of the operator; fields as its arguments, defaults a batch of two sequences."""

    q: torch.Tensor = field(default_factory=lambda: draw(7, HEADS, WIDTH, seed=1))
    k: torch.Tensor = field(default_factory=lambda: draw(7, KV_HEADS, WIDTH, seed=2))
    v: torch.Tensor = field(default_factory=lambda: draw(7, KV_HEADS, WIDTH, seed=3))
    cache_keys: torch.Tensor = field(default_factory=lambda: draw(24, KV_HEADS, WIDTH, seed=4))
    cache_values: torch.Tensor = field(default_factory=lambda: draw(24, KV_HEADS, WIDTH, seed=5))
    row_offsets: tuple[int, ...] = (0, 5, 7)
    context_starts: tuple[int, ...] = (0, 3)
    block_tables: tuple[tuple[int, ...], ...] = ((4, 1), (0, 3))
    slots: tuple[int, ...] = (16, 17, 18, 19, 4, 3, 12)
    causal: bool = True
    window: int = 0
    backend: str = "naive"
    batch_invariant: bool = False

    def run(self) -> torch.Tensor:
        with torch.inference_mode():
            out: torch.Tensor = paged_attention(
                self.q,
                self.k,
                self.v,
                self.cache_keys,
                self.cache_values,
                torch.tensor(self.row_offsets),
                torch.tensor(self.context_starts),
                torch.tensor(self.block_tables),
                torch.tensor(self.slots),
                BLOCK,
                SCALE,
                self.causal,
                self.window,
                self.backend,
                self.batch_invariant,
            )
        return out.view(len(self.q), HEADS, WIDTH)


def row(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of one row, head by head: q [H, d], k and v [N, H_kv, d]."""
    heads = []
    for head in range(HEADS):
        group = head // (HEADS // KV_HEADS)
        weights = torch.softmax(k[:, group] @ q[head] * SCALE, dim=0)
        heads.append(weights @ v[:, group])
    return torch.stack(heads)


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return float((a - b).abs().max()) < 1e-13


@pytest.mark.parametrize("batch_invariant", [False, True])
@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_rows_see_their_own_sequence_up_to_their_absolute_position(
    *, name: str, batch_invariant: bool
) -> None:
    call = Call(backend=name, batch_invariant=batch_invariant)
    context = call.cache_keys[:3].clone(), call.cache_values[:3].clone()
    out = call.run()
    for index in range(5):  # the first sequence starts at position 0
        seen = slice(0, index + 1)
        assert close(out[index], row(call.q[index], call.k[seen], call.v[seen]))
    for index in (5, 6):  # the second has three tokens, in block 0, before this batch
        k, v = (
            torch.cat((before, now[5 : index + 1]))
            for before, now in zip(context, (call.k, call.v), strict=True)
        )
        assert close(out[index], row(call.q[index], k, v))


def test_keys_and_values_land_in_their_slots_and_nowhere_else() -> None:
    call = Call(slots=(16, 17, 18, 19, 4, -1, 99))
    before = call.cache_keys.clone()
    call.run()
    assert torch.equal(call.cache_keys[[16, 17, 18, 19, 4]], call.k[:5])
    assert torch.equal(call.cache_values[[16, 17, 18, 19, 4]], call.v[:5])
    others = [s for s in range(24) if s not in (16, 17, 18, 19, 4)]
    assert torch.equal(call.cache_keys[others], before[others])


@pytest.mark.parametrize("batch_invariant", [False, True])
@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_bidirectional_rows_see_all_of_their_sequence_without_a_cache(
    *, name: str, batch_invariant: bool
) -> None:
    empty = torch.empty(0, KV_HEADS, WIDTH, dtype=torch.float64)
    call = Call(
        causal=False,
        cache_keys=empty,
        cache_values=empty,
        backend=name,
        batch_invariant=batch_invariant,
    )
    out = call.run()
    for first, stop in ((0, 5), (5, 7)):
        for index in range(first, stop):
            expected = row(call.q[index], call.k[first:stop], call.v[first:stop])
            assert close(out[index], expected)


@pytest.mark.parametrize("batch_invariant", [False, True])
@pytest.mark.parametrize("name", sorted(BACKENDS))
@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 7, 8, 100])
def test_a_window_reaches_so_far_and_no_further(
    *, window: int, name: str, batch_invariant: bool
) -> None:
    call = Call(window=window, backend=name, batch_invariant=batch_invariant)
    before = call.cache_keys[:3].clone(), call.cache_values[:3].clone()
    out = call.run()
    for index in range(7):
        k, v = call.k[: index + 1], call.v[: index + 1]
        if index >= 5:  # the second sequence has three tokens before this batch
            k, v = torch.cat((before[0], k[5:])), torch.cat((before[1], v[5:]))
        assert close(out[index], row(call.q[index], k[-window:], v[-window:]))
    out = replace(call, causal=False).run()
    for first, stop in ((0, 5), (5, 7)):
        for index in range(first, stop):
            near = slice(max(first, index - window // 2), min(stop, index + window // 2 + 1))
            assert close(out[index], row(call.q[index], call.k[near], call.v[near]))


@given(
    start=st.integers(0, 60),
    rows=st.integers(1, 24),
    window=st.integers(1, 70),
    name=st.sampled_from(sorted(BACKENDS)),
    batch_invariant=st.booleans(),
)
def test_a_chunk_sees_through_its_window_what_the_whole_prompt_sees(
    *, start: int, rows: int, window: int, name: str, batch_invariant: bool
) -> None:
    """Keys before the window are left out of a chunk; that must change nothing but roundoff."""
    total = start + rows
    table = tuple(torch.randperm(21, generator=torch.Generator().manual_seed(start)).tolist())
    slots = tuple(table[p // BLOCK] * BLOCK + p % BLOCK for p in range(total))
    whole = Call(
        q=draw(total, HEADS, WIDTH, seed=1),
        k=draw(total, KV_HEADS, WIDTH, seed=2),
        v=draw(total, KV_HEADS, WIDTH, seed=3),
        cache_keys=torch.zeros(21 * BLOCK, KV_HEADS, WIDTH, dtype=torch.float64),
        cache_values=torch.zeros(21 * BLOCK, KV_HEADS, WIDTH, dtype=torch.float64),
        row_offsets=(0, total),
        context_starts=(0,),
        block_tables=(table,),
        slots=slots,
        window=window,
        backend=name,
        batch_invariant=batch_invariant,
    )
    expected = whole.run()[start:]
    piece = replace(
        whole,
        **{part: getattr(whole, part)[start:] for part in ("q", "k", "v", "slots")},
        row_offsets=(0, rows),
        context_starts=(start,),
    )
    assert close(piece.run(), expected)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_rows_are_zero(*, causal: bool) -> None:
    out = Call(row_offsets=(0, 5, 5), causal=causal).run()
    assert torch.count_nonzero(out[5:]) == 0
    assert torch.count_nonzero(out[:5]) == out[:5].numel()


@given(
    offsets=st.lists(DEVICE_DATA, min_size=3, max_size=3),
    starts=st.lists(DEVICE_DATA, min_size=2, max_size=2),
    blocks=st.lists(DEVICE_DATA, min_size=4, max_size=4),
    slots=st.lists(DEVICE_DATA, min_size=7, max_size=7),
    name=st.sampled_from(sorted(BACKENDS)),
    causal=st.booleans(),
    window=st.integers(0, 9),
    batch_invariant=st.booleans(),
)
def test_no_device_data_makes_it_raise_or_read_out_of_bounds(
    *,
    offsets: list[int],
    starts: list[int],
    blocks: list[int],
    slots: list[int],
    name: str,
    causal: bool,
    window: int,
    batch_invariant: bool,
) -> None:
    out = Call(
        row_offsets=tuple(offsets),
        context_starts=tuple(starts),
        block_tables=((blocks[0], blocks[1]), (blocks[2], blocks[3])),
        slots=tuple(slots),
        backend=name,
        causal=causal,
        window=window,
        batch_invariant=batch_invariant,
    ).run()
    assert bool(torch.isfinite(out).all())
    clipped = [min(max(offset, 0), 7) for offset in offsets]
    covered = {r for a, b in pairwise(clipped) for r in range(a, b)}
    uncovered = [r for r in range(7) if r not in covered]
    assert torch.count_nonzero(out[uncovered]) == 0


def test_a_context_past_the_block_table_reads_the_table_and_no_further() -> None:
    stale = Call(context_starts=(0, 1000))
    full = row(
        stale.q[6],
        *(c[[0, 1, 2, 3, 12, 13, 14, 15]] for c in _written(stale)),
    )
    assert close(stale.run()[6], full)


def _written(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """The caches after the call has written its keys and values."""
    copy = replace(call, cache_keys=call.cache_keys.clone(), cache_values=call.cache_values.clone())
    copy.run()
    return copy.cache_keys, copy.cache_values


def test_an_empty_cache_gives_zeros() -> None:
    empty = torch.empty(0, KV_HEADS, WIDTH, dtype=torch.float64)
    out = Call(cache_keys=empty, cache_values=empty).run()
    assert torch.count_nonzero(out) == 0


def test_the_compilers_stand_in_has_the_operators_shape() -> None:
    call = Call()
    arguments = (
        *(call.q, call.k, call.v, call.cache_keys, call.cache_values),
        *map(torch.tensor, (call.row_offsets, call.context_starts)),
        torch.tensor(call.block_tables),
        torch.tensor(call.slots),
        *(BLOCK, SCALE, True, 3, "naive", False),
    )
    torch.library.opcheck(
        paged_attention,
        arguments,
        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"),
    )


def test_backends_are_those_the_configuration_offers() -> None:
    assert sorted([*BACKENDS, *BATCH_BACKENDS]) == sorted(ATTENTION_BACKENDS)
    with pytest.raises(ConfigurationError, match=r"'flash'.*\['naive', 'sdpa', 'triton'\]"):
        backend("flash")

"""Attention over paged keys and values for all sequences of a batch at once, in one Triton kernel.

The tiled online softmax of FlashAttention-2 (arXiv:2307.08691), one program for a tile of rows of
one head. Nothing waits for the host: offsets and block tables are read by the kernel.

Keys are taken in tiles that start at position 0, whatever rows are asked for, and a tile that a row
sees nothing of leaves its sums as they are: the running maximum stays, so the old sums are scaled
by exactly 1 and exact zeros are added. A row's bits hence depend neither on the rows beside it nor
on where a chunk of the prompt begins. For the same reason every fused multiply-add is written out:
the loops with and without a mask have to round alike.

The reference is `engine.attention.op` with the backend `naive`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
import triton
import triton.language as tl

LOG2_E: Final = 1.4426950408889634
MAX_HEAD_DIM: Final = 128
DTYPES: Final = (torch.float32, torch.bfloat16, torch.float16)
"""float64 has no matrix units behind `tl.dot`."""


class Tiles(NamedTuple):
    """How a launch is cut; fixed for a dtype and a head width, so that rows keep their bits."""

    rows: int
    keys: int
    warps: int
    stages: int


def tiles_for(dtype: torch.dtype, head_dim: int) -> Tiles:
    """Tile sizes. float32 takes no tensor cores; its products are unrolled, so its tiles are small
    where heads are wide, or compiling them would take minutes."""
    if dtype == torch.float32:
        side = 32 if head_dim <= 32 else 16
        return Tiles(rows=side, keys=side, warps=4, stages=2)
    if head_dim > 64:
        return Tiles(rows=128, keys=128, warps=8, stages=2)
    return Tiles(rows=128, keys=64, warps=4, stages=3)


@triton.jit
def _slots(
    table: tl.tensor,
    at: tl.tensor,
    inside: tl.tensor,
    last_block: tl.tensor,
    block_size: tl.constexpr,
) -> tl.tensor:
    """Cache rows of positions `at`; a stale block is some block of the cache."""
    blocks = tl.load(table + at // block_size, mask=inside, other=0)
    blocks = tl.minimum(tl.maximum(blocks, 0), last_block)
    return blocks * block_size + at % block_size


@triton.jit
def _over_tiles(
    acc: tl.tensor,
    peak: tl.tensor,
    total: tl.tensor,
    q: tl.tensor,
    first_tile: tl.tensor,
    end_tile: tl.tensor,
    at: tl.tensor,
    end: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    table: tl.tensor,
    key_row: tl.tensor,
    value_row: tl.tensor,
    last_block: tl.tensor,
    window: tl.tensor,
    scale: tl.tensor,
    head_dim: tl.constexpr,
    width: tl.constexpr,
    tile_keys: tl.constexpr,
    block_size: tl.constexpr,
    causal: tl.constexpr,
    windowed: tl.constexpr,
    masked: tl.constexpr,
    precision: tl.constexpr,
) -> tl.tensor:
    """Add key tiles first_tile .. end_tile - 1 to the running sums of rows at positions `at`."""
    lanes = tl.arange(0, width)
    in_head = lanes < head_dim
    for tile in range(first_tile, end_tile):
        key_at = tile * tile_keys + tl.arange(0, tile_keys)
        inside = key_at < end
        if causal:
            rows = _slots(table, key_at, inside, last_block, block_size)
        else:
            rows = key_at.to(tl.int64)
        if masked or head_dim != width:
            k = tl.load(
                keys + rows[None, :] * key_row + lanes[:, None],
                mask=inside[None, :] & in_head[:, None],
                other=0.0,
            )
        else:
            k = tl.load(keys + rows[None, :] * key_row + lanes[:, None])
        scores = tl.dot(q, k, input_precision=precision)
        if masked:
            seen = inside[None, :]
            distance = at[:, None] - key_at[None, :]
            if causal:
                seen = seen & (distance >= 0)
                if windowed:
                    seen = seen & (distance < window)
            elif windowed:
                seen = seen & (distance <= window // 2) & (distance >= -(window // 2))
            scores = tl.where(seen, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        # A row that has seen no key yet keeps -inf; 0 in its place avoids inf - inf.
        finite = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        weights = tl.exp2(
            tl.fma(
                scores,
                tl.full(scores.shape, 1.0, tl.float32) * scale,
                tl.broadcast_to((-finite * scale)[:, None], scores.shape),
            )
        )
        decay = tl.exp2((peak - finite) * scale)  # exactly 1 where the maximum stays
        total = tl.fma(total, decay, tl.sum(weights, 1))
        acc = acc * decay[:, None]
        if masked or head_dim != width:
            v = tl.load(
                values + rows[:, None] * value_row + lanes[None, :],
                mask=inside[:, None] & in_head[None, :],
                other=0.0,
            )
        else:
            v = tl.load(values + rows[:, None] * value_row + lanes[None, :])
        acc = tl.dot(weights.to(v.dtype), v, acc, input_precision=precision)
        peak = new_peak
    return acc, peak, total


@triton.jit(do_not_specialize=["window", "rows_in_batch", "num_seqs", "columns", "last_block"])
def _attend(
    q: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    out: tl.tensor,
    row_offsets: tl.tensor,
    context_starts: tl.tensor,
    block_tables: tl.tensor,
    rows_in_batch: tl.tensor,
    num_seqs: tl.tensor,
    columns: tl.tensor,
    last_block: tl.tensor,
    window: tl.tensor,
    scale: tl.tensor,
    q_row: tl.tensor,
    q_head: tl.tensor,
    key_row: tl.tensor,
    key_head: tl.tensor,
    value_row: tl.tensor,
    value_head: tl.tensor,
    out_row: tl.tensor,
    out_head: tl.tensor,
    group: tl.constexpr,
    head_dim: tl.constexpr,
    width: tl.constexpr,
    max_seqs: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_keys: tl.constexpr,
    block_size: tl.constexpr,
    causal: tl.constexpr,
    windowed: tl.constexpr,
    precision: tl.constexpr,
) -> None:
    head = tl.program_id(0)
    # Last tile first: under a causal mask it has the most keys.
    tile = tl.num_programs(1) - 1 - tl.program_id(1)

    # Sequence s gets tiles from offset[s] // tile_rows + s on: never fewer than it needs.
    sequences = tl.arange(0, max_seqs)
    offsets = tl.load(row_offsets + sequences, mask=sequences < num_seqs, other=0)
    offsets = tl.minimum(tl.maximum(offsets, 0), rows_in_batch)
    starts_here = (offsets // tile_rows + sequences <= tile) & (sequences < num_seqs)
    sequence = tl.sum(starts_here.to(tl.int32), 0) - 1
    if sequence < 0:
        return
    first = tl.load(row_offsets + sequence)
    stop = tl.load(row_offsets + sequence + 1)
    first = tl.minimum(tl.maximum(first, 0), rows_in_batch).to(tl.int32)
    stop = tl.minimum(tl.maximum(stop, 0), rows_in_batch).to(tl.int32)
    begin = (tile - (first // tile_rows + sequence)) * tile_rows
    count = stop - first
    if begin < 0 or begin >= count:
        return

    row = begin + tl.arange(0, tile_rows)
    real = row < count
    lanes = tl.arange(0, width)
    if causal:
        # Bounded before the sum: a stale start may be any number.
        reach = columns * block_size
        start = tl.minimum(tl.maximum(tl.load(context_starts + sequence), 0), reach).to(tl.int32)
        end = tl.minimum(start + count, reach)
        at = tl.minimum(start + row, end - 1)
        table = block_tables + sequence.to(tl.int64) * columns
        kv_first = tl.zeros([], tl.int64)
    else:
        end = count
        at = tl.minimum(row, end - 1)
        table = block_tables
        kv_first = first.to(tl.int64)
    if end <= 0:
        return
    kv_head = head // group
    keys += kv_first * key_row + kv_head * key_head
    values += kv_first * value_row + kv_head * value_head
    row64 = (first + row).to(tl.int64)
    tile_q = tl.load(
        q + row64[:, None] * q_row + head * q_head + lanes[None, :],
        mask=real[:, None] & (lanes < head_dim)[None, :],
        other=0.0,
    )

    lowest = tl.min(at, 0)
    highest = tl.max(at, 0)
    first_tile = 0
    full = end // tile_keys
    end_tile = tl.cdiv(end, tile_keys)
    if causal:
        full = (lowest + 1) // tile_keys
        end_tile = highest // tile_keys + 1
        if windowed:
            first_tile = tl.maximum(lowest - window + 1, 0) // tile_keys
    elif windowed:
        first_tile = tl.maximum(lowest - window // 2, 0) // tile_keys
        end_tile = tl.minimum(end_tile, (highest + window // 2) // tile_keys + 1)

    acc = tl.zeros([tile_rows, width], tl.float32)
    peak = tl.full([tile_rows], float("-inf"), tl.float32)
    total = tl.zeros([tile_rows], tl.float32)
    if windowed:
        full = first_tile
    else:
        acc, peak, total = _over_tiles(
            acc, peak, total, tile_q, first_tile, full, at, end, keys, values, table,
            key_row, value_row, last_block, window, scale,
            head_dim, width, tile_keys, block_size, causal, windowed,
            masked=False, precision=precision,
        )  # fmt: skip
    acc, peak, total = _over_tiles(
        acc, peak, total, tile_q, full, end_tile, at, end, keys, values, table,
        key_row, value_row, last_block, window, scale,
        head_dim, width, tile_keys, block_size, causal, windowed,
        masked=True, precision=precision,
    )  # fmt: skip
    attended = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(
        out + row64[:, None] * out_row + head * out_head + lanes[None, :],
        attended.to(out.dtype.element_ty),
        mask=real[:, None] & (lanes < head_dim)[None, :],
    )


@triton.jit(do_not_specialize=["capacity"])
def _write(
    keys: tl.tensor,
    values: tl.tensor,
    cache_keys: tl.tensor,
    cache_values: tl.tensor,
    slot_mapping: tl.tensor,
    capacity: tl.tensor,
    key_row: tl.tensor,
    key_head: tl.tensor,
    value_row: tl.tensor,
    value_head: tl.tensor,
    heads: tl.constexpr,
    head_dim: tl.constexpr,
    width: tl.constexpr,
) -> None:
    """One row's keys and values of all heads to its slot; a slot outside the cache is none."""
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping + row)
    if slot < 0 or slot >= capacity:
        return
    lanes = tl.arange(0, width)
    inside = lanes < heads * head_dim
    head, lane = lanes // head_dim, lanes % head_dim
    to = slot * heads * head_dim + lanes
    k = tl.load(keys + row * key_row + head * key_head + lane, mask=inside)
    tl.store(cache_keys + to, k, mask=inside)
    v = tl.load(values + row * value_row + head * value_head + lane, mask=inside)
    tl.store(cache_values + to, v, mask=inside)


def write_cache(
    k: torch.Tensor,
    v: torch.Tensor,
    cache_keys: torch.Tensor,
    cache_values: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> None:
    """Rows of k and v [T, H_kv, d] to the slots [T] of the caches; slots outside are skipped."""
    k, v = _dense(k), _dense(v)
    rows, heads, head_dim = k.shape
    _write[(rows,)](
        k,
        v,
        cache_keys,
        cache_values,
        slot_mapping,
        cache_keys.shape[0],
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        heads=heads,
        head_dim=head_dim,
        width=triton.next_power_of_2(heads * head_dim),
    )


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    row_offsets: torch.Tensor,
    context_starts: torch.Tensor,
    block_tables: torch.Tensor,
    *,
    block_size: int,
    scale: float,
    causal: bool,
    window: int,
    tiles: Tiles | None = None,
) -> torch.Tensor:
    """Attention of q [T, H, d]; rows that no sequence covers are zero. -> [T, H, d].

    Causal: k and v are the caches [slots, H_kv, d]. Otherwise they are the batch's own [T, H_kv,
    d]. The rest is as in `engine.attention.op`.
    """
    out = torch.zeros_like(q, memory_format=torch.contiguous_format)
    rows, heads, head_dim = q.shape
    if rows == 0 or k.shape[0] < (block_size if causal else 1):
        return out
    q, k, v = _dense(q), _dense(k), _dense(v)
    num_seqs = context_starts.shape[0]
    tiles = tiles or tiles_for(q.dtype, head_dim)
    grid = (heads, triton.cdiv(rows, tiles.rows) + num_seqs)
    _attend[grid](
        q,
        k,
        v,
        out,
        row_offsets,
        context_starts,
        block_tables.contiguous(),
        rows,
        num_seqs,
        block_tables.shape[1],
        max(k.shape[0] // block_size - 1, 0),
        min(window, 2**31 - 1),
        scale * LOG2_E,
        q.stride(0),
        q.stride(1),
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        out.stride(0),
        out.stride(1),
        group=heads // k.shape[1],
        head_dim=head_dim,
        width=max(triton.next_power_of_2(head_dim), 16),
        max_seqs=triton.next_power_of_2(num_seqs),
        tile_rows=tiles.rows,
        tile_keys=tiles.keys,
        block_size=block_size,
        causal=causal,
        windowed=0 < window < rows + block_tables.shape[1] * block_size,
        precision="ieee",
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    return out


def _dense(x: torch.Tensor) -> torch.Tensor:
    """x with neighbouring values of a head side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()

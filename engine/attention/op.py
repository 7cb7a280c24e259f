"""Paged attention over a packed batch, as one operator that the compiler does not look into.

Its inputs are device data: offsets, context starts and block tables are read when the operator
runs, not when it was submitted. A device cannot raise, so neither does this: whatever the offsets
say, rows are clipped to the batch and keys to the block table, and rows that no sequence covers
come out zero. Requests are checked on the host, at admission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F

from engine.attention.base import backend as backend_called
from engine.attention.base import batch_backend
from engine.layers.linear import MIN_ROWS

KEY_TILE: Final = 512
"""Keys are padded to multiples of this when reduction orders must not depend on their number: the
CPU kernel behind `scaled_dot_product_attention` splits keys into tiles of 512."""
_NAME: Final = "pooling_parity::paged_attention"


def _paged_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cache_keys: torch.Tensor,
    cache_values: torch.Tensor,
    row_offsets: torch.Tensor,
    context_starts: torch.Tensor,
    block_tables: torch.Tensor,
    slot_mapping: torch.Tensor,
    block_size: int,
    scale: float,
    causal: bool,  # noqa: FBT001 - operator schemas are positional
    window: int,
    backend: str,
    batch_invariant: bool,  # noqa: FBT001
) -> torch.Tensor:
    """Write k and v to the cache if `causal`, then attend within each sequence.

    A causal row at absolute position p (context start + row) sees the keys at positions
    (p - window, p], read from the cache through the block table. Otherwise the row at p sees its
    sequence's rows of this batch at positions p - window // 2 .. p + window // 2, both included,
    and the cache is not touched. `window` 0: as far as there are keys.

    Shapes: q [T, H, d], k and v [T, H_kv, d], caches [num_blocks * block_size, H_kv, d],
    row_offsets [S + 1], context_starts [S], block_tables [S, B], slot_mapping [T], all int64;
    returns [T, H * d] of q's dtype.
    """
    whole_batch = batch_backend(backend)
    if whole_batch is not None:
        return whole_batch(
            q,
            k,
            v,
            cache_keys,
            cache_values,
            row_offsets,
            context_starts,
            block_tables,
            slot_mapping,
            block_size=block_size,
            scale=scale,
            causal=causal,
            window=window,
        ).flatten(1)
    attend_rows = backend_called(backend)
    total = q.shape[0]
    if causal:
        _write(cache_keys, k, slot_mapping)
        _write(cache_values, v, slot_mapping)
    out = torch.zeros_like(q, memory_format=torch.contiguous_format)
    offsets = [min(max(offset, 0), total) for offset in row_offsets.tolist()]
    reach = block_tables.shape[1] * block_size if len(cache_keys) >= block_size else 0
    for sequence, start in enumerate(context_starts.tolist()):
        first, stop = offsets[sequence], offsets[sequence + 1]
        if first >= stop:
            continue
        if causal:
            end = min(max(start, 0) + stop - first, reach)
            if end == 0:
                continue
            span = _Span.causal(max(start, 0), stop - first, end, window, whole=batch_invariant)
            slots = _slots(block_tables[sequence], span, block_size, len(cache_keys))
            keys, values = (cache.index_select(0, slots) for cache in (cache_keys, cache_values))
        else:
            span = _Span(start=0, rows=stop - first, first_key=0, end=stop - first)
            keys, values = k[first:stop], v[first:stop]
        if causal and span.is_triangle(window) and not batch_invariant:
            # No mask to make and to read, and no product above the diagonal.
            out[first:stop] = attend_rows(
                q[first:stop], keys, values, mask=None, scale=scale, causal=True
            )
            continue
        rows, keys, values, mask = _pad(
            q[first:stop], keys, values, span, causal, window, batch_invariant
        )
        out[first:stop] = attend_rows(rows, keys, values, mask=mask, scale=scale)[: stop - first]
    return out.flatten(1)


def _fake(q: torch.Tensor, *_others: object) -> torch.Tensor:
    return q.new_empty(q.shape[0], q.shape[1] * q.shape[2])


def _write(cache: torch.Tensor, rows: torch.Tensor, slot_mapping: torch.Tensor) -> None:
    kept = (slot_mapping >= 0) & (slot_mapping < len(cache))
    if not kept.all():
        slot_mapping, rows = slot_mapping[kept], rows[kept]
    cache.index_copy_(0, slot_mapping, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Absolute positions of one sequence's rows, start .. start + rows - 1, and of the keys that
    they are given, first_key .. end - 1. A row past the last key stands at the last key."""

    start: int
    rows: int
    first_key: int
    end: int

    def is_triangle(self, window: int) -> bool:
        """Whether the rows are a whole prompt of at least two, each seeing all up to itself."""
        whole = self.start == 0 and self.rows == self.end > 1
        return whole and (not window or window >= self.rows)

    @classmethod
    def causal(cls, start: int, rows: int, end: int, window: int, *, whole: bool) -> _Span:
        """Keys from the first that any row sees; `whole`: from position 0, so that which keys
        share a tile does not depend on where a chunk begins."""
        seen = min(start, end - 1) - window + 1
        return cls(
            start=start, rows=rows, first_key=0 if whole or not window else max(seen, 0), end=end
        )


def _slots(table: torch.Tensor, span: _Span, block_size: int, capacity: int) -> torch.Tensor:
    """Cache rows of the span's keys, int64. A stale block is some block of the cache."""
    positions = torch.arange(span.first_key, span.end, device=table.device)
    blocks = table[positions // block_size].clamp(0, capacity // block_size - 1)
    return blocks * block_size + positions % block_size


def _pad(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    span: _Span,
    causal: bool,  # noqa: FBT001
    window: int,
    batch_invariant: bool,  # noqa: FBT001
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Add zero rows and keys, and say who sees whom; no mask where every row sees every key.

    Batch-invariant: a multiple of `MIN_ROWS` rows, so that no tile of rows is left with fewer, and
    of `KEY_TILE` keys. Otherwise only a single row is padded, to two.
    """
    rows, keys = len(q), len(k)
    more_rows = -rows % MIN_ROWS if batch_invariant else max(2 - rows, 0)
    more_keys = -keys % KEY_TILE if batch_invariant else 0
    mask = None
    narrow = window > 0 and window // 2 < rows - 1
    if causal or narrow or more_keys:
        at = torch.arange(span.start, span.start + rows, device=q.device).clamp(max=span.end - 1)
        key_at = torch.arange(span.first_key, span.first_key + keys + more_keys, device=q.device)
        distance = at[:, None] - key_at
        mask = distance >= 0 if causal else (key_at < span.end).expand(rows, -1)
        if window:
            mask = mask & (distance < window if causal else distance.abs() <= window // 2)
        if more_rows:  # an added row sees one key: a row that sees none would be 0/0
            mask = torch.cat((mask, (key_at == span.first_key).expand(more_rows, -1)))
    return _padded(q, more_rows), _padded(k, more_keys), _padded(v, more_keys), mask


def _padded(heads: torch.Tensor, more: int) -> torch.Tensor:
    """With so many zero rows behind. `F.pad` by nothing would copy."""
    return F.pad(heads, (0, 0, 0, 0, 0, more)) if more else heads


# Not `torch.library.custom_op`: its first call imports the compiler, which is seconds for every
# process that only runs eagerly.
torch.library.define(
    _NAME, torch.library.infer_schema(_paged_attention, mutates_args=("cache_keys", "cache_values"))
)
torch.library.impl(_NAME, "CompositeExplicitAutograd", _paged_attention)
torch.library.register_fake(_NAME, _fake)
paged_attention: Final = torch.ops.pooling_parity.paged_attention.default
"""The operator; its arguments and its result are those of `_paged_attention`."""

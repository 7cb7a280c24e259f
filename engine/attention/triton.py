"""Attention in one Triton kernel for the whole batch; the host waits for nothing."""

from __future__ import annotations

import torch

from engine.kernels import attention as kernels


def attend_batch(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cache_keys: torch.Tensor,
    cache_values: torch.Tensor,
    row_offsets: torch.Tensor,
    context_starts: torch.Tensor,
    block_tables: torch.Tensor,
    slot_mapping: torch.Tensor,
    *,
    block_size: int,
    scale: float,
    causal: bool,
    window: int,
) -> torch.Tensor:
    """See `AttendBatch`."""
    if causal:
        kernels.write_cache(k, v, cache_keys, cache_values, slot_mapping)
        k, v = cache_keys, cache_values
    return kernels.attend(
        q,
        k,
        v,
        row_offsets,
        context_starts,
        block_tables,
        block_size=block_size,
        scale=scale,
        causal=causal,
        window=window,
    )

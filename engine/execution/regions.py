"""The pieces of a block that are compiled as one: functions of a block and tensors.

With one tensor rank a region is the whole block. With several it ends where their sums are taken.
A graph that cannot hold attention has a region on either side of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from engine.models.base import AttentionMetadata, Block, LayerCache


def whole(
    block: Block,
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    cache_keys: torch.Tensor,
    cache_values: torch.Tensor,
    row_offsets: torch.Tensor,
    context_starts: torch.Tensor,
    block_tables: torch.Tensor,
    slot_mapping: torch.Tensor,
    block_size: int,
    window: int,
) -> torch.Tensor:
    """x [T, D] -> x [T, D]."""
    out: torch.Tensor = block(
        x,
        cos,
        sin,
        cache_keys,
        cache_values,
        row_offsets,
        context_starts,
        block_tables,
        slot_mapping,
        block_size,
        window,
    )
    return out


def attention(
    block: Block,
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    cache_keys: torch.Tensor,
    cache_values: torch.Tensor,
    row_offsets: torch.Tensor,
    context_starts: torch.Tensor,
    block_tables: torch.Tensor,
    slot_mapping: torch.Tensor,
    block_size: int,
    window: int,
) -> torch.Tensor:
    """x [T, D] -> this rank's summand [T, D] of the attention's output."""
    q, k, v = block.attention_inputs(x, cos, sin)
    cache = LayerCache(keys=cache_keys, values=cache_values, block_size=block_size)
    meta = AttentionMetadata(
        row_offsets=row_offsets,
        context_starts=context_starts,
        block_tables=block_tables,
        slot_mapping=slot_mapping,
    )
    return block.attention_output(block.attend(q, k, v, cache, meta, window))


def feed_forward(
    block: Block, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """x and the attention's whole output y, both [T, D] -> x, and this rank's next summand."""
    x = block.add_attention(x, y)
    return x, block.feed_forward(x)


def join(block: Block, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x and the feed-forward's whole output y, both [T, D] -> x."""
    return block.add_feed_forward(x, y)


def before_attention(
    block: Block, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See `Block.attention_inputs`."""
    return block.attention_inputs(x, cos, sin)


def after_attention(block: Block, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
    """x [T, D] and attended [T, H * d] -> x [T, D]."""
    x = block.add_attention(x, block.attention_output(attended))
    return block.add_feed_forward(x, block.feed_forward(x))


REGIONS: Final[dict[str, Callable[..., Any]]] = {
    "whole": whole,
    "attention": attention,
    "feed_forward": feed_forward,
    "join": join,
    "before_attention": before_attention,
    "after_attention": after_attention,
}
"""Name -> function, compiled when first called."""
ONE_RANK: Final = ("whole",)
TENSOR_RANKS: Final = ("attention", "feed_forward", "join")
PIECEWISE: Final = ("before_attention", "after_attention")

"""Which part of a layer each tensor rank holds (arXiv:1909.08053, section 3).

A product whose outputs are divided (queries, keys, values, the way up of the feed-forward) keeps
some of its rows, one whose inputs are divided (the way out of attention, the way down) some of its
columns: its result is then a summand. What is in no table is held whole by every rank.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING

import torch

from engine.errors import ConfigurationError
from engine.weights import Checkpoint

if TYPE_CHECKING:
    from engine.models.base import Block
    from engine.models.config import ModelConfig


def check_divisible(config: ModelConfig, block: type[Block], count: int) -> None:
    """Raise ConfigurationError unless `count` tensor ranks can hold a layer, each an equal part."""
    if count == 1:
        return
    if not block.column_split:
        raise ConfigurationError(
            f"tensor_parallel_size={count}: {config.architecture} is not divided over tensor "
            "ranks. Use tensor_parallel_size=1, or pipeline stages"
        )
    sizes = {
        "query heads": config.num_heads,
        "key and value heads": config.num_kv_heads,
        "feed-forward columns": config.intermediate_size,
    }
    if any(size % count for size in sizes.values()):
        most = gcd(*sizes.values())
        valid = [n for n in range(1, most + 1) if most % n == 0]
        told = ", ".join(f"{size} {what}" for what, size in sizes.items())
        raise ConfigurationError(
            f"tensor_parallel_size={count} does not divide {config.architecture}, which has "
            f"{told}; choose one of {valid}"
        )


def layer_reader(
    checkpoint: Checkpoint, block: type[Block], prefix: str, dtype: torch.dtype
) -> Callable[[str], torch.Tensor]:
    """A function from a tensor's name within the layer to the part that this tensor rank holds.

    The bias of a product whose inputs are divided is added once: by rank 0, and as zeros by the
    others, so that all ranks run one compiled graph.
    """
    rank, count = checkpoint.tensor_rank, checkpoint.tensor_ranks

    def read(name: str) -> torch.Tensor:
        product, _, kind = name.rpartition(".")
        if count > 1 and product in block.column_split:
            pieces = block.column_split[product] * count
            kept = range(rank, pieces, count)
            return checkpoint.read_pieces(prefix + name, dtype, dim=0, pieces=pieces, kept=kept)
        if count > 1 and product in block.row_split:
            if kind == "weight":
                kept = range(rank, rank + 1)
                return checkpoint.read_pieces(prefix + name, dtype, dim=1, pieces=count, kept=kept)
            whole = checkpoint.read(prefix + name, dtype)
            return whole if rank == 0 else torch.zeros_like(whole)
        return checkpoint.read(prefix + name, dtype)

    return read

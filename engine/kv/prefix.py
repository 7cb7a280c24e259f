"""What a prompt's full KV blocks are known by, and whether its answer can do with cached ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A prompt as the prefix cache sees it.

    `keys[i]` stands for tokens [0, (i + 1) * block_size) and all else that their keys and values
    depend on. `readable`: the answer needs no row of a token that is not computed, so cached
    blocks may stand in for computing; others publish what they computed and adopt nothing.
    """

    keys: tuple[str, ...] = ()
    readable: bool = False

    def hits(self, num_tokens: int, block_size: int) -> tuple[str, ...]:
        """Keys a prompt may adopt: none unless readable, and the last token is always computed."""
        return self.keys[: (num_tokens - 1) // block_size] if self.readable else ()


def block_keys(
    token_ids: Sequence[int], type_ids: Sequence[int], *, block_size: int, context: str
) -> tuple[str, ...]:
    """A chain of SHA-256 over full blocks: each key covers its block and all blocks before it.

    `context` stands for what else changes hidden states and may differ between two prompts of
    one pool, such as a caller's salt. Model, dtype and attention windows are one per engine, and
    a pool belongs to one engine.
    """
    key = hashlib.sha256(f"{block_size}|{context}".encode()).hexdigest()
    keys = []
    for stop in range(block_size, len(token_ids) + 1, block_size):
        piece = [
            list(token_ids[stop - block_size : stop]),
            list(type_ids[stop - block_size : stop]),
        ]
        key = hashlib.sha256(f"{key}{json.dumps(piece)}".encode()).hexdigest()
        keys.append(key)
    return tuple(keys)

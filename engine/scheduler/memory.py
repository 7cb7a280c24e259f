"""What a run did with its KV memory, as the ledger counted it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWitness:
    """Counted by the scheduler's ledger while it ran; no field is read from a configuration."""

    num_blocks: int = 0
    """KV blocks there were: free, held and cached ones added up. 0 without paged KV."""
    peak_blocks: int = 0
    """Most blocks held at once."""
    tables: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Request id -> (tokens of its whole prompt, blocks they took)."""
    hit_tokens: Mapping[str, int] = field(default_factory=dict)
    """Request id -> tokens that were not computed because the prefix cache held them."""
    preemptions: Mapping[str, int] = field(default_factory=dict)
    """Request id -> how often it lost its memory and began again."""
    evictions: int = 0
    """Cached blocks that were put to another use."""
    short_steps: int = 0
    """Steps after which some prompt needed more blocks than were free."""

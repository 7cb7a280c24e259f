"""What an adapter is given in these tests."""

from __future__ import annotations

from typing import Any

from harness.checkpoints.catalogue import checkpoint, path_of
from harness.systems.base import Assignment

CHUNK = 16


def assignment(name: str = "tiny-qwen3", **changes: Any) -> Assignment:
    """tiny-qwen3, or another checkpoint, in small sizes."""
    given: dict[str, Any] = {
        "checkpoint": checkpoint(name),
        "folder": path_of(name),
        "chunk": CHUNK,
        "max_num_seqs": 2,
        "max_model_len": 96,
    }
    return Assignment(**{**given, **changes})

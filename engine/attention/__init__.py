"""Attention over paged keys and values: one operator, and a table of backends inside it."""

from __future__ import annotations

from engine.attention.base import (
    BACKENDS,
    BATCH_BACKENDS,
    AttendBatch,
    AttendRows,
    backend,
    batch_backend,
)
from engine.attention.calls import AttentionCalls
from engine.attention.op import KEY_TILE, paged_attention

__all__ = [
    "BACKENDS",
    "BATCH_BACKENDS",
    "KEY_TILE",
    "AttendBatch",
    "AttendRows",
    "AttentionCalls",
    "backend",
    "batch_backend",
    "paged_attention",
]

"""Attention over paged keys and values: one operator, and a table of backends inside it."""

from __future__ import annotations

from engine.attention.base import BACKENDS, AttendRows, backend
from engine.attention.op import KEY_TILE, paged_attention

__all__ = ["BACKENDS", "KEY_TILE", "AttendRows", "backend", "paged_attention"]

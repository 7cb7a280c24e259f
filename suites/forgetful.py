"""Recordings whose persistent memory keeps, of one input, what another step left there."""

from __future__ import annotations

from typing import Any

import pytest

from engine.execution.static import StaticBuffers


def forget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no step copy the input `name` into what a graph reads."""
    load = StaticBuffers.load

    def stale(self: StaticBuffers, frame: Any, rows: int) -> None:
        before = getattr(self, name).clone()
        load(self, frame, rows)
        getattr(self, name).copy_(before)

    monkeypatch.setattr(StaticBuffers, "load", stale)

"""A run's first step on a CUDA device comes after what its host did before, whoever builds what.

Passes wrongly if streams were ordered when they are made and never again. Ruled out by
`test_every_run_begins_after_the_current_stream`.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.config import StreamPolicy
from engine.stream.cuda import CudaDevice


class Recorded:
    """A stream that writes down whom it waited for. No device is needed."""

    def __init__(self) -> None:
        self.waited: list[Any] = []

    def wait_stream(self, other: Any) -> None:
        self.waited.append(other)

    def synchronize(self) -> None:
        pass


def test_every_run_begins_after_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank makes its streams first and fills its buffers then, on the current stream."""
    current = Recorded()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: current)
    monkeypatch.setattr(torch.cuda, "Stream", Recorded)
    device = CudaDevice(StreamPolicy(), 1)
    raw: Any = [device.stream(name).raw for name in ("compute@0", "copy@0")]
    assert [stream.waited for stream in raw] == [[current], [current]]
    device.begin_run()
    assert [stream.waited for stream in raw] == [[current] * 2] * 2

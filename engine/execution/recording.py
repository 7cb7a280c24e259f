"""Recordings: work captured once on fixed memory and replayed as it is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from engine.attention.calls import add, taken

Work = Callable[[], None]
WARM_UPS = 2
"""Runs before a capture: kernels are compiled and libraries initialised by then."""


class Recorder(Protocol):
    """Turns work that reads and writes fixed memory into something that replays it."""

    def __call__(self, work: Work) -> Work: ...


def record_on_host(work: Work) -> Work:
    """The work itself: a host has no launches to save, but the same fixed memory."""
    return work


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage is collected in here.

    An engine that was closed may leave its graphs in a reference cycle. Destroying one is not
    permitted while another is captured, and ends that capture.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CudaRecorder:
    """CUDA graphs. Owns: the memory pool that all of them share; record the largest first."""

    def __init__(self) -> None:
        self._pool: Any = torch.cuda.graph_pool_handle()

    def __call__(self, work: Work) -> Work:
        """Warm up on a side stream, as capturing asks for, then capture."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                work()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        taken()
        with uncollected(), torch.cuda.graph(graph, pool=self._pool):
            work()
        attended = taken()

        def replay() -> None:
            graph.replay()
            add(attended)  # what is replayed does not come by the counter

        return replay


@dataclass(slots=True)
class Recording:
    """Pieces that replay one after another. Owns: how often they did."""

    pieces: Sequence[Work]
    replays: int = field(default=0, init=False)

    def replay(self) -> None:
        for piece in self.pieces:
            piece()
        self.replays += 1

"""The sum over a stage's tensor ranks, in one order wherever they run.

A rank writes its summand to a buffer of its own and goes on once every peer has submitted its
summand too. Each rank then adds them all up itself, in order of rank: the same additions inline and
over gloo or NCCL, for any number of ranks. (Of two summands the order is of no weight, IEEE
addition commutes; of three it is.)

Each rank has two summand buffers and uses them in turn. A rank that writes one again has read its
peers' later summands, which each of them computed after it had read this one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final, TypeVar

import torch

from engine.stream.base import Buffer, Device, Event, Stream

SUMMAND_BUFFERS: Final = 2
T = TypeVar("T")


class AllReduce(ABC):
    """One rank's end. Owns: its summand buffers, and the count of sums it computed.

    A sum is a generator: it stops where every peer must have submitted as much before this rank may
    submit more. Ranks of one process are advanced in turn; a rank on its own is run to the end,
    since its collective waits for the peers on the device.
    """

    def __init__(
        self, device: Device, rank: int, num_rows: int, width: int, like: torch.Tensor
    ) -> None:
        """Buffers for up to `num_rows` rows of `width`, of `like`'s dtype and device."""
        self.reductions = 0
        """Sums this rank has computed."""
        self.summands = 0
        """Summands in them, counted as they were added."""
        self._offered = 0
        self._ready: dict[int, Event] = {}
        """Fence of the summand last written to each buffer."""
        with torch.inference_mode():
            self._buffers = tuple(
                Buffer(f"summand{turn}@{rank}", like.new_zeros((num_rows, width)))
                for turn in range(SUMMAND_BUFFERS)
            )
        for buffer in self._buffers:
            device.register(buffer)

    def submit(
        self,
        stream: Stream,
        name: str,
        summand: Callable[[], torch.Tensor],
        deliver: Callable[[torch.Tensor], None],
        *,
        rows: int,
        step: int,
        cost: int,
        reads: Sequence[Buffer],
    ) -> Iterator[None]:
        """Queue `summand` (-> [rows, width]) on `stream`, then its sum over all ranks.

        `deliver` gets the sum when it has been computed, on the stream; the tensor is its own.
        """
        mine = self._buffers[self._offered % len(self._buffers)]

        def write() -> None:
            mine.tensor[:rows].copy_(summand())

        stream.submit(name, write, step=step, cost=cost, reads=reads, writes=(mine,))
        turn = self._offered % len(self._buffers)
        self._ready[turn] = stream.record()
        self._offered += 1
        yield
        summands, sources = self._collect(stream, turn, rows)

        def add() -> None:
            total, *others = summands()
            self.summands += 1 + len(others)
            for other in others:
                total = total + other
            self.reductions += 1
            deliver(total)

        stream.submit(f"{name}, all-reduce", add, step=step, reads=sources)

    @abstractmethod
    def _collect(
        self, stream: Stream, turn: int, rows: int
    ) -> tuple[Callable[[], Sequence[torch.Tensor]], Sequence[Buffer]]:
        """What yields all ranks' summands when it runs, in order; and the buffers that reads."""


class InlineAllReduce(AllReduce):
    """Peers in this process: each reads the others' buffers, after their events."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._peers: Sequence[InlineAllReduce] = (self,)

    @staticmethod
    def connect(ends: Sequence[InlineAllReduce]) -> None:
        """Make these ends, in order of tensor rank, each other's peers."""
        for end in ends:
            end._peers = tuple(ends)

    def _collect(
        self, stream: Stream, turn: int, rows: int
    ) -> tuple[Callable[[], Sequence[torch.Tensor]], Sequence[Buffer]]:
        sources = [peer._buffers[turn] for peer in self._peers]
        for peer in self._peers:
            # A peer that was advanced before this rank may have offered its next summand already.
            assert peer._offered - self._offered in (0, 1), (peer._offered, self._offered)
            if peer is not self:
                stream.wait(peer._ready[turn])
        return lambda: [source.tensor[:rows] for source in sources], sources


class ProcessAllReduce(AllReduce):
    """Peers in processes of their own, joined by a torch.distributed group (gloo or NCCL)."""

    def __init__(self, *args: Any, group: torch.distributed.ProcessGroup, size: int) -> None:
        super().__init__(*args)
        self._group, self._size = group, size

    def _collect(
        self, stream: Stream, turn: int, rows: int
    ) -> tuple[Callable[[], Sequence[torch.Tensor]], Sequence[Buffer]]:
        del stream
        mine = self._buffers[turn]

        def gather() -> Sequence[torch.Tensor]:
            own = mine.tensor[:rows]
            summands = [torch.empty_like(own) for _ in range(self._size)]
            torch.distributed.all_gather(summands, own, group=self._group)
            return summands

        return gather, (mine,)


def advance_together(submissions: Sequence[Generator[None, None, T]]) -> list[T]:
    """Advance generators in turn, each to its next stop, until all end; what they return."""
    while True:
        returned: list[T] = []
        for submission in submissions:
            try:
                next(submission)
            except StopIteration as end:
                returned.append(end.value)
        if returned:
            assert len(returned) == len(submissions), "tensor ranks submit the same sums"
            return returned

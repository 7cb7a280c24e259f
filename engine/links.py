"""Links carry hidden states from one pipeline stage to the next, without blocking the host.

A send borrows the sender's hidden buffer until the receiver has its copy; the sender's next step
waits for that before it writes the buffer again (seeds, rule 4).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import torch

from engine.stream.base import Buffer, Device, Event, Stream


class Link(Protocol):
    """One direction between two neighbouring ranks."""

    def send(self, stream: Stream, source: Buffer, num_rows: int, *, step: int) -> None:
        """Queue rows [:num_rows] of `source`, once `stream` has produced them."""

    def sent(self) -> Event | None:
        """Fence of the latest send: its source may be overwritten. None: nothing was sent."""

    def receive(self, stream: Stream, target: Buffer, num_rows: int, *, step: int) -> None:
        """Queue on `stream` the arrival of the next rows in `target`[:num_rows]."""


@dataclass(slots=True)
class _Parcel:
    ready: Event
    source: Buffer
    num_rows: int


class InlineLink:
    """Owns: the parcels between two ranks of one process. The receiver copies from the source."""

    def __init__(self) -> None:
        self._parcels: deque[_Parcel] = deque()
        self._taken: Event | None = None

    def send(self, stream: Stream, source: Buffer, num_rows: int, *, step: int) -> None:
        del step
        self._parcels.append(_Parcel(ready=stream.record(), source=source, num_rows=num_rows))

    def sent(self) -> Event | None:
        return self._taken

    def receive(self, stream: Stream, target: Buffer, num_rows: int, *, step: int) -> None:
        parcel = self._parcels.popleft()
        assert parcel.num_rows == num_rows, (parcel.num_rows, num_rows)
        stream.wait(parcel.ready)

        def copy() -> None:
            target.tensor[:num_rows].copy_(parcel.source.tensor[:num_rows])

        stream.submit("receive", copy, step=step, reads=(parcel.source,), writes=(target,))
        self._taken = stream.record()


class ProcessLink:
    """Owns: one end of a torch.distributed link (gloo on CPU, NCCL on GPU).

    The sending end has a stream of its own, so a blocking send never blocks compute or the host.
    """

    def __init__(self, device: Device, rank: int, peer: int) -> None:
        self._device, self._rank, self._peer = device, rank, peer
        self._sent: Event | None = None

    def send(self, stream: Stream, source: Buffer, num_rows: int, *, step: int) -> None:
        link = self._device.stream(f"link@{self._rank}")
        link.wait(stream.record())

        def send() -> None:
            torch.distributed.send(source.tensor[:num_rows], dst=self._peer)

        link.submit("send", send, step=step, reads=(source,))
        self._sent = link.record()

    def sent(self) -> Event | None:
        return self._sent

    def receive(self, stream: Stream, target: Buffer, num_rows: int, *, step: int) -> None:
        def receive() -> None:
            torch.distributed.recv(target.tensor[:num_rows], src=self._peer)

        stream.submit("receive", receive, step=step, writes=(target,))

"""A race detector for streams: vector clocks over streams and host timelines.

Happens-before (Lamport 1978) with vector clocks (Fidge, Mattern 1988). An operation comes after its
predecessor on the stream, after all that the submitting host had seen, and after each event that
the stream waited for. Clocks are fixed at submission, so what is reported does not depend on the
policy: a race is found under a schedule that hides it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from engine.errors import LedgerError
from engine.stream.base import Buffer

Clock = Mapping[str, int]
"""Timeline -> number of its last access that is known to have happened. Never changed in place."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A place in the order: one operation of a stream or one access by a host."""

    timeline: str
    epoch: int
    """Count on its own timeline, from 1."""
    clock: Clock
    order: int
    """Place among all points of the run, to name the same pair first under every policy."""
    name: str
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class _Access:
    point: Point
    write: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """Two accesses to one buffer, at least one a write, that may happen in either order."""

    buffer: str
    first: Point
    first_writes: bool
    second: Point
    second_writes: bool

    def __str__(self) -> str:
        def tell(point: Point, *, writes: bool) -> str:
            verb = "writes" if writes else "reads"
            return f"{point.name!r} of step {point.step} on {point.timeline} {verb}"

        return (
            f"buffer {self.buffer!r}: {tell(self.first, writes=self.first_writes)} it, "
            f"{tell(self.second, writes=self.second_writes)} it, and nothing orders the two"
        )


class HappensBefore:
    """Owns: the vector clocks, the buffers under watch, and the hazards found in this run.

    Not locked; the device serialises its calls.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, Buffer] = {}
        self._clocks: dict[str, Clock] = {}
        self._streams: set[str] = set()
        self._floor: Clock = {}
        self._order = 0
        self._accesses: dict[int, dict[str, list[_Access]]] = {}
        self._hazards: dict[tuple[int, frozenset[tuple[str, str]]], Hazard] = {}

    # ------------------------------------------------------------------------------- buffers
    def register(self, buffer: Buffer) -> None:
        """Watch a buffer.

        Raises:
            LedgerError: its storage is watched under another name; orders could not be told apart.
        """
        known = self._buffers.setdefault(buffer.identity, buffer)
        if known.name != buffer.name:
            raise LedgerError(
                f"buffer {buffer.name!r} shares its storage with buffer {known.name!r}: "
                "allocate each reusable buffer on its own, or register the shared one once"
            )

    # -------------------------------------------------------------------------------- clocks
    def submit(
        self,
        stream: str,
        *,
        host: str,
        name: str,
        step: int,
        reads: Sequence[Buffer],
        writes: Sequence[Buffer],
    ) -> Point:
        """An operation of `stream`, submitted by `host`."""
        self._check_watched(name, [*reads, *writes])
        self._streams.add(stream)
        point = self._advance(stream, _join(self.clock(stream), self.clock(host)), name, step)
        self._access(point, reads, writes)
        return point

    def host_access(
        self,
        host: str,
        *,
        name: str,
        step: int,
        reads: Sequence[Buffer],
        writes: Sequence[Buffer],
    ) -> None:
        """An access by the host itself, now."""
        self._check_host(host)
        self._check_watched(name, [*reads, *writes])
        self._access(self._advance(host, self.clock(host), name, step), reads, writes)

    def ran(self, point: Point, tensors: Iterable[torch.Tensor]) -> None:
        """Reads that were known only once the operation had run, by the storage they looked at."""
        storages = {tensor.untyped_storage().data_ptr(): None for tensor in tensors}
        self._access(point, [self._buffers[s] for s in storages if s in self._buffers], ())

    def wait(self, timeline: str, clock: Clock) -> None:
        """Order all that follows on `timeline` after an event's clock."""
        self._clocks[timeline] = _join(self.clock(timeline), clock)

    def join(self, host: str, other: str) -> None:
        """Order the host after all that the host `other` did.

        Raises:
            LedgerError: one of them is a stream; only its events can be waited for.
        """
        self._check_host(host)
        self._check_host(other)
        self.wait(host, self.clock(other))

    def clock(self, timeline: str) -> Clock:
        """What `timeline` is known to come after, its own accesses included."""
        return self._clocks.get(timeline, self._floor)

    def barrier(self) -> None:
        """Everything so far comes before everything from now on, on every timeline."""
        for clock in self._clocks.values():
            self._floor = _join(self._floor, clock)
        self._clocks = {}

    def begin_run(self) -> None:
        """Forget accesses and hazards. Epochs go on, so an event of an earlier run is harmless."""
        self.barrier()
        self._order = 0
        self._accesses = {}
        self._hazards = {}

    # ------------------------------------------------------------------------------- hazards
    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """One for each (buffer, names, timelines), its earliest pair, in order of submission."""
        return tuple(sorted(self._hazards.values(), key=lambda h: (h.first.order, h.second.order)))

    def _advance(self, timeline: str, clock: Clock, name: str, step: int) -> Point:
        epoch = clock.get(timeline, 0) + 1
        point = Point(timeline, epoch, {**clock, timeline: epoch}, self._order, name, step)
        self._order += 1
        self._clocks[timeline] = point.clock
        return point

    def _access(self, point: Point, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> None:
        modes = {b.identity: False for b in reads} | {b.identity: True for b in writes}
        for identity, write in modes.items():
            access = _Access(point, write)
            lanes = self._accesses.setdefault(identity, {})
            for timeline, lane in lanes.items():
                if timeline != point.timeline:
                    self._compare(identity, access, lane)
            # Dynamic reads arrive after later accesses of the same stream; a lane stays sorted.
            insort(lanes.setdefault(point.timeline, []), access, key=lambda a: a.point.epoch)

    def _compare(self, identity: int, new: _Access, lane: list[_Access]) -> None:
        """Clocks only grow along a lane, so all before the first ordered access is ordered too."""
        seen = new.point.clock.get(lane[0].point.timeline, 0)
        for old in reversed(lane):
            if old.point.epoch <= seen:
                return
            new_came_first = old.point.clock.get(new.point.timeline, 0) >= new.point.epoch
            if not new_came_first and (old.write or new.write):
                self._report(identity, old, new)

    def _report(self, identity: int, a: _Access, b: _Access) -> None:
        first, second = (a, b) if a.point.order < b.point.order else (b, a)
        hazard = Hazard(
            buffer=self._buffers[identity].name,
            first=first.point,
            first_writes=first.write,
            second=second.point,
            second_writes=second.write,
        )
        key = (identity, frozenset((x.point.name, x.point.timeline) for x in (a, b)))
        known = self._hazards.get(key)
        if known is None or _order(hazard) < _order(known):
            self._hazards[key] = hazard

    def _check_host(self, timeline: str) -> None:
        if timeline in self._streams:
            raise LedgerError(
                f"{timeline!r} is a stream, not a host timeline: record an event on it and wait"
            )

    def _check_watched(self, name: str, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            if buffer.identity not in self._buffers:
                raise LedgerError(
                    f"{name!r} declares buffer {buffer.name!r}, which is not registered with the "
                    f"device; registered: {sorted(b.name for b in self._buffers.values())}"
                )


def _join(a: Clock, b: Clock) -> Clock:
    if not b:
        return a
    joined = dict(a)
    for timeline, epoch in b.items():
        if epoch > joined.get(timeline, 0):
            joined[timeline] = epoch
    return joined


def _order(hazard: Hazard) -> tuple[int, int]:
    return hazard.first.order, hazard.second.order

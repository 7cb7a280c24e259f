"""Random programs over streams, hosts, events and buffers, and what must come of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from hypothesis import strategies as st

from engine.stream import Buffer, Device, Event

STREAMS = ("compute@0", "copy@0", "compute@1")
HOSTS = ("host@0", "driver")
NUM_BUFFERS = 3
PRIME = 10_007  # keeps values exact, and a wrong order from giving the right value


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One access to come: by an operation, or by the host itself where `stream` is None."""

    stream: int | None
    host: int
    name: str
    source: int
    target: int
    kind: str
    """`update` (reads both, writes target), `copy` (target from source), `read`, `late` (a read
    that is declared only once it ran; a host's is plain)."""
    careful: bool
    """Whether the access orders itself after everything that it conflicts with."""
    by_host: bool
    """Careful by a wait of the host, or else by a wait of the stream."""

    @property
    def timeline(self) -> str:
        return HOSTS[self.host] if self.stream is None else STREAMS[self.stream]

    @property
    def modes(self) -> dict[int, bool]:
        """Buffer -> whether it is written."""
        if self.kind in ("read", "late"):
            return {self.source: False}
        return {self.source: False} | {self.target: True}


_stream = st.integers(0, len(STREAMS) - 1)
_host = st.integers(0, len(HOSTS) - 1)
_buffer = st.integers(0, NUM_BUFFERS - 1)


def programs(*, careful: bool) -> st.SearchStrategy[list[Access]]:
    """Programs in which every access is careful, or any may be careless."""
    access = st.builds(
        Access,
        stream=st.none() | _stream,
        host=_host,
        name=st.sampled_from(["load", "run"]),
        source=_buffer,
        target=_buffer,
        kind=st.sampled_from(["update", "copy", "read", "late"]),
        careful=st.just(value=True) if careful else st.booleans(),
        by_host=st.booleans(),
    )
    return st.lists(access, max_size=10)


@dataclass(slots=True)
class Outcome:
    memory: list[int]
    seen: dict[int, int]
    """Step -> value that a read saw."""
    hazards: tuple[str, ...]
    expected_hazards: tuple[str, ...]


@dataclass(slots=True)
class _Reference:
    """Happens-before again, by explicit sets of everything known to have come before."""

    known: dict[str, frozenset[int]] = field(default_factory=dict)
    past: list[tuple[Access, frozenset[int]]] = field(default_factory=list)

    def of(self, timeline: str) -> frozenset[int]:
        return self.known.get(timeline, frozenset())

    def learn(self, timeline: str, other: frozenset[int]) -> None:
        self.known[timeline] = self.of(timeline) | other

    def add(self, access: Access) -> None:
        before = self.of(access.timeline) | self.of(HOSTS[access.host])
        self.known[access.timeline] = before | {len(self.past)}
        self.past.append((access, before))

    def hazards(self) -> tuple[str, ...]:
        found: dict[tuple[int, frozenset[tuple[str, str]]], str] = {}
        for i, (a, _) in enumerate(self.past):
            for j, (b, before) in enumerate(self.past[i + 1 :], start=i + 1):
                if i in before:
                    continue
                for buffer in a.modes.keys() & b.modes.keys():
                    if a.modes[buffer] or b.modes[buffer]:
                        key = (buffer, frozenset({(a.name, a.timeline), (b.name, b.timeline)}))
                        found.setdefault(key, _sentence(buffer, (i, a), (j, b)))
        return tuple(sorted(found.values()))


def _sentence(buffer: int, *pair: tuple[int, Access]) -> str:
    told = [
        f"{access.name!r} of step {step} on {access.timeline} "
        f"{'writes' if access.modes[buffer] else 'reads'} it"
        for step, access in pair
    ]
    return f"buffer 'b{buffer}': {', '.join(told)}, and nothing orders the two"


def run(on: Device, program: list[Access]) -> Outcome:
    """Run a program; access i is step i. Every careless access takes its chances."""
    buffers = [Buffer(f"b{i}", torch.tensor([i + 1])) for i in range(NUM_BUFFERS)]
    for buffer in buffers:
        on.register(buffer)
    reference, seen = _Reference(), dict[int, int]()
    events: dict[int, tuple[Event, frozenset[int]]] = {}

    for step, access in enumerate(program):
        host = HOSTS[access.host]
        if access.careful:
            for earlier, (other, _) in enumerate(reference.past):
                shared = access.modes.keys() & other.modes.keys()
                if not any(access.modes[b] or other.modes[b] for b in shared):
                    continue
                if other.stream is None:
                    on.join(host, other.timeline)
                    reference.learn(host, reference.of(other.timeline))
                    continue
                event, known = events[earlier]
                if access.stream is None or access.by_host:
                    event.synchronize(host)
                    reference.learn(host, known)
                else:
                    on.stream(access.timeline).wait(event)
                    reference.learn(access.timeline, known)

        work = _work(buffers, access, step, seen)
        reads = [buffers[b] for b, write in access.modes.items() if not write]
        writes = [buffers[b] for b, write in access.modes.items() if write]
        if access.stream is None:
            on.host_access(host, access.name, step=step, reads=reads, writes=writes)
            work()
        else:
            stream = on.stream(access.timeline)
            late = (
                (lambda reads=reads: [b.tensor[:1] for b in reads])
                if access.kind == "late"
                else reads
            )
            stream.submit(
                access.name,
                work,
                step=step,
                host=host,
                cost=1 + step % 3,
                reads=late,
                writes=writes,
            )
        reference.add(access)
        if access.stream is not None:
            event = on.stream(access.timeline).record()
            events[step] = (event, reference.of(access.timeline))
        on.end_step(step, host)

    on.drain()
    memory = [int(buffer.tensor.item()) for buffer in buffers]
    return Outcome(memory, seen, tuple(sorted(on.hazards)), reference.hazards())


def _work(
    buffers: list[Buffer], access: Access, step: int, seen: dict[int, int]
) -> Callable[[], None]:
    source, target = buffers[access.source].tensor, buffers[access.target].tensor

    def work() -> None:
        if access.kind == "update":
            target.copy_((source * 3 + target * 5 + step + 1) % PRIME)
        elif access.kind == "copy":
            target.copy_(source)
        else:
            seen[step] = int(source.item())

    return work

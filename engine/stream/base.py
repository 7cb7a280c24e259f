"""The contract every device keeps, whether its streams are real or of the host's making.

A stream runs what it is given in order, at some time of its own choosing. An event fences what a
stream was given so far; a host or another stream may wait for it. Nothing else orders anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from engine.errors import ConfigurationError, LedgerError
from engine.stream.log import Operation, OperationLog

__all__ = ["Buffer", "Device", "Event", "Operation", "OperationLog", "Reads", "Stream", "rank_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A reusable buffer under watch. Its identity is its storage, so every view of it counts."""

    name: str
    tensor: torch.Tensor
    identity: int = field(init=False)

    def __post_init__(self) -> None:
        identity = self.tensor.untyped_storage().data_ptr()
        if identity == 0:
            raise LedgerError(
                f"buffer {self.name!r} has no memory (shape={tuple(self.tensor.shape)})"
            )
        object.__setattr__(self, "identity", identity)


Reads = Sequence[Buffer] | Callable[[], Sequence[torch.Tensor]]
"""Buffers an operation reads; or a callable, asked right after it ran, for the tensors it read.

The callable is for an operation whose reads are decided as it runs: a borrowed view of a
registered buffer is a read of that buffer, an owned copy is not.
"""


class Event(Protocol):
    """Fences what its stream was given before `record`."""

    @property
    def done(self) -> bool:
        """Whether everything fenced has run. Never waits; stays False after a failure."""
        ...

    def synchronize(self, host: str) -> None:
        """Make the host timeline `host` wait. A cooperative policy runs what is missing.

        Raises:
            WorkerError: an operation of the device raised in this run.
        """
        ...


class Stream(Protocol):
    """Operations in program order."""

    @property
    def name(self) -> str:
        """`kind@rank`, for example `compute@0`."""
        ...

    def submit(
        self,
        name: str,
        fn: Callable[[], None],
        *,
        step: int,
        host: str | None = None,
        cost: int = 1,
        reads: Reads = (),
        writes: Sequence[Buffer] = (),
    ) -> Operation:
        """Append an operation. `fn` reads its inputs when it runs, not now.

        Args:
            name: what the operation does; names the operation in hazards and errors.
            fn: the work; runs under `torch.inference_mode`.
            step: step that it belongs to.
            host: timeline that submits it; by default `host@<rank of the stream>`.
            cost: kernels it stands for, in the units of the `paced` policy.
            reads: see `Reads`.
            writes: registered buffers that it writes.
        """
        ...

    def record(self) -> Event:
        """Fence everything submitted so far, and whatever the stream was told to wait for."""
        ...

    def wait(self, event: Event) -> None:
        """Hold every later operation of this stream back until the event is done."""
        ...


class Device(Protocol):
    """All streams of one process, with the history and the order of what they did."""

    @property
    def log(self) -> OperationLog:
        """The numbered history of this run."""
        ...

    @property
    def hazards(self) -> tuple[str, ...]:
        """One sentence for each pair of conflicting accesses that nothing orders."""
        ...

    def stream(self, name: str) -> Stream:
        """The stream `kind@rank`, made on first use."""
        ...

    def register(self, buffer: Buffer) -> None:
        """Put a reusable buffer under watch. Registering it again is harmless."""
        ...

    def host_access(
        self,
        host: str,
        name: str,
        *,
        step: int,
        reads: Sequence[Buffer] = (),
        writes: Sequence[Buffer] = (),
    ) -> None:
        """Say that the host timeline is about to touch buffers. A decision point."""
        ...

    def join(self, host: str, other: str) -> None:
        """Order the host timeline after all that the host timeline `other` did: a message."""
        ...

    def end_step(self, step: int, host: str) -> None:
        """Say that the host has submitted all of a step. A decision point."""
        ...

    def begin_run(self) -> None:
        """Clear history, clocks, hazards and failure, and rewind drawn choices.

        Raises:
            LedgerError: operations are still queued.
        """
        ...

    def drain(self) -> None:
        """Run all that was submitted; every timeline goes on after it.

        Raises:
            WorkerError: an operation of the device raised in this run.
        """
        ...

    def close(self) -> None:
        """Drop what is queued and end every thread. Harmless when repeated."""
        ...


def rank_of(stream: str) -> int:
    """Rank in a stream's name.

    Raises:
        ConfigurationError: the name is not `kind@rank`.
    """
    match = re.fullmatch(r"[a-z][a-z_]*@(\d+)", stream)
    if match is None:
        raise ConfigurationError(f"stream={stream!r}: expected KIND@RANK, such as 'compute@0'")
    return int(match.group(1))

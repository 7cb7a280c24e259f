"""Host staging that is used again and again, and the one rule that makes that safe.

A slot is handed out only after the host has waited for the slot's last reader on the device. The
rule knows nothing of outputs: a step that returns nothing still reads what was staged for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from engine.config import INPUT_BUFFERS
from engine.errors import ConfigurationError, LedgerError
from engine.stream.base import Buffer, Device, Event


class Slot(Protocol):
    """What one step is staged through."""

    @property
    def buffer(self) -> Buffer:
        """The slot's storage, all of it, so that nothing escapes the happens-before check."""
        ...


T = TypeVar("T", bound=Slot)


class Slots(Generic[T]):
    """Owns: the staging slots, their fences, and the count of both."""

    def __init__(
        self, device: Device, build: Callable[[int], T], depth: int, kind: str = "ring"
    ) -> None:
        """Build the slots and put their buffers under watch.

        Args:
            build: makes slot i with storage of its own.
            depth: steps in flight; as many slots for `ring`, where reuse then rarely waits.
            kind: `ring`, or `fenced` for a single slot whatever the depth.
        """
        if kind not in INPUT_BUFFERS:
            raise ConfigurationError(f"inputs={kind!r}: expected one of {INPUT_BUFFERS}")
        if depth < 1:
            raise ConfigurationError(f"depth={depth}: expected at least 1 step in flight")
        self._slots = tuple(build(index) for index in range(1 if kind == "fenced" else depth))
        self._fences: list[Event | None] = [None] * len(self._slots)
        self._handed_out = [0] * len(self._slots)
        self._fenced = [0] * len(self._slots)
        self._next = 0
        for slot in self._slots:
            device.register(slot.buffer)

    @property
    def depth(self) -> int:
        """Number of slots."""
        return len(self._slots)

    @property
    def num_used(self) -> int:
        """Slots that were handed out at least once."""
        return sum(count > 0 for count in self._handed_out)

    def acquire(self, host: str) -> T:
        """The next slot, after the host timeline `host` has waited for its last fence."""
        index = self._next
        self._next = (index + 1) % self.depth
        fence = self._fences[index]
        if fence is not None:
            fence.synchronize(host)
        self._handed_out[index] += 1
        return self._slots[index]

    def fence(self, slot: T, event: Event) -> None:
        """Name the event after which nothing on the device reads the slot. For every step."""
        for index, own in enumerate(self._slots):
            if own is slot:
                self._fences[index] = event
                self._fenced[index] += 1
                return
        raise LedgerError(f"slot={slot!r} is none of these {self.depth} slots")

    def check_integrity(self) -> None:
        """Raise unless every slot that was handed out was fenced as often."""
        if self._handed_out != self._fenced:
            raise LedgerError(
                f"staging slots do not balance: handed out {self._handed_out}, fenced "
                f"{self._fenced} times; fence every step, with or without an output"
            )

"""The pool of state slots."""

from __future__ import annotations

import heapq

from engine.errors import LedgerError


class SlotPool:
    """Hands out state slots in [0, max_slots), lowest first.

    A slot is the row of the device-side computed-token counter that belongs to one sequence.

    Owns: which state slot belongs to which request.
    """

    def __init__(self, max_slots: int) -> None:
        if max_slots < 1:
            raise LedgerError(f"a slot pool needs at least 1 slot, got max_slots={max_slots}")
        self.max_slots = max_slots
        self._free = list(range(max_slots))  # sorted, hence already a heap
        self._held: dict[str, int] = {}

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def holders(self) -> frozenset[str]:
        """Ids of the requests that hold a slot."""
        return frozenset(self._held)

    def acquire(self, request_id: str) -> int:
        """Give the lowest free slot to a request that has none."""
        if request_id in self._held:
            raise LedgerError(f"request {request_id!r} already has slot={self._held[request_id]}")
        if not self._free:
            raise LedgerError(
                f"request {request_id!r} asked for a slot and all {self.max_slots} are held "
                f"by {sorted(self._held)}"
            )
        self._held[request_id] = heapq.heappop(self._free)
        return self._held[request_id]

    def slot(self, request_id: str) -> int:
        """The slot a request holds."""
        if request_id not in self._held:
            raise LedgerError(f"request {request_id!r} has no slot; holders are {self._held}")
        return self._held[request_id]

    def release(self, request_id: str) -> None:
        """Take a slot back; no step that reads its counter may be in flight."""
        heapq.heappush(self._free, self.slot(request_id))
        del self._held[request_id]

    def check_integrity(self) -> None:
        """Raise `LedgerError` unless free + held is every slot, each exactly once."""
        if sorted([*self._free, *self._held.values()]) != list(range(self.max_slots)):
            raise LedgerError(
                "state slots do not balance: "
                f"free={sorted(self._free)} + held={self._held} "
                f"({len(self._free)} + {len(self._held)} slots) "
                f"!= every slot in [0, {self.max_slots}) once"
            )

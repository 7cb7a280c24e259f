"""The pool of KV blocks."""

from __future__ import annotations

import heapq

from engine.errors import LedgerError


class BlockPool:
    """Hands out blocks of `block_size` token positions each, lowest id first.

    Owns: which KV block belongs to which request. Every block is free or held by exactly one
    request; the order is deterministic, so two runs with the same plan use the same blocks.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        if num_blocks < 1 or block_size < 1:
            raise LedgerError(
                "a block pool needs at least 1 block of at least 1 token, "
                f"got num_blocks={num_blocks}, block_size={block_size}"
            )
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._free = list(range(num_blocks))  # sorted, hence already a heap
        self._held: dict[str, tuple[int, ...]] = {}

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def holders(self) -> frozenset[str]:
        """Ids of the requests that hold blocks."""
        return frozenset(self._held)

    def blocks_for(self, num_tokens: int) -> int:
        """How many blocks hold `num_tokens` positions."""
        return -(-num_tokens // self.block_size)

    def can_allocate(self, n: int) -> bool:
        return n <= len(self._free)

    def allocate(self, request_id: str, n: int) -> tuple[int, ...]:
        """Give `n` blocks to a request that holds none; position p lives in block p // block_size.

        Raises `LedgerError` when fewer than `n` are free (ask `can_allocate` first) or when the
        request already holds blocks.
        """
        if request_id in self._held:
            raise LedgerError(
                f"request {request_id!r} already holds blocks {self._held[request_id]}: "
                "release them before allocating again"
            )
        if n < 1 or not self.can_allocate(n):
            raise LedgerError(
                f"request {request_id!r} asked for n={n} blocks: "
                f"expected between 1 and the {len(self._free)} free of {self.num_blocks}"
            )
        self._held[request_id] = tuple(heapq.heappop(self._free) for _ in range(n))
        return self._held[request_id]

    def release(self, request_id: str) -> None:
        """Take back every block of a request; no step that reads them may be in flight."""
        for block in self._blocks_of(request_id):
            heapq.heappush(self._free, block)
        del self._held[request_id]

    def table(self, request_id: str) -> tuple[int, ...]:
        """The request's blocks in position order."""
        return self._blocks_of(request_id)

    def check_integrity(self) -> None:
        """Raise `LedgerError` unless free + held is every block, each exactly once."""
        held = sorted(block for blocks in self._held.values() for block in blocks)
        if sorted([*self._free, *held]) != list(range(self.num_blocks)):
            raise LedgerError(
                "KV blocks do not balance: "
                f"free={sorted(self._free)} + held={self._held} "
                f"({len(self._free)} + {len(held)} blocks) "
                f"!= every block in [0, {self.num_blocks}) once"
            )

    def _blocks_of(self, request_id: str) -> tuple[int, ...]:
        if request_id not in self._held:
            raise LedgerError(
                f"request {request_id!r} holds no blocks; holders are {sorted(self._held)}"
            )
        return self._held[request_id]

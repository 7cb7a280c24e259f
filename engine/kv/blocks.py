"""The pool of KV blocks."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice

from engine.errors import LedgerError


class BlockPool:
    """Hands out blocks of `block_size` token positions each, and remembers what full ones hold.

    A block is *held* by the requests whose tables name it (more than one once it is shared), else
    it is free. A free block that is published keeps its contents and can be adopted again until
    it is handed out for something else: blank blocks go first, in the order in which they became
    free, then the published block that has been free longest.

    A block may be free and still be read by a step in flight: `pin` and `unpin` keep count, and
    the scheduler waits before it puts a pinned block to another use. So which block is handed out
    follows from the plan alone, never from which results have been taken.

    Owns: which KV block belongs to which requests, and which prefix each published block holds.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        if num_blocks < 1 or block_size < 1:
            raise LedgerError(
                "a block pool needs at least 1 block of at least 1 token, "
                f"got num_blocks={num_blocks}, block_size={block_size}"
            )
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._blank = deque(range(num_blocks))
        self._cached: OrderedDict[int, None] = OrderedDict()  # published and free, oldest first
        self._tables: dict[str, list[int]] = {}
        self._holders: Counter[int] = Counter()
        self._pins: Counter[int] = Counter()
        self._block_of: dict[str, int] = {}
        self._key_of: dict[int, str] = {}
        self.num_evictions = 0
        self._dropped: list[int] = []

    @property
    def num_free(self) -> int:
        return len(self._blank) + len(self._cached)

    @property
    def num_held(self) -> int:
        return len(self._holders)

    @property
    def holders(self) -> frozenset[str]:
        """Ids of the requests that hold blocks."""
        return frozenset(self._tables)

    def blocks_for(self, num_tokens: int) -> int:
        """How many blocks hold `num_tokens` positions."""
        return -(-num_tokens // self.block_size)

    def table(self, request_id: str) -> tuple[int, ...]:
        """The request's blocks in position order; position p lives in block p // block_size."""
        return tuple(self._tables.get(request_id, ()))

    def cached(self, keys: Sequence[str]) -> tuple[int, ...]:
        """The published blocks of the longest prefix of `keys` that is there in full."""
        found = []
        for key in keys:
            if key not in self._block_of:
                break
            found.append(self._block_of[key])
        return tuple(found)

    def num_free_beside(self, adopted: Iterable[int]) -> int:
        """Blocks that would be free once `adopted` were held."""
        return self.num_free - sum(block in self._cached for block in set(adopted))

    def num_freed_by(self, request_ids: Collection[str], adopted: Iterable[int] = ()) -> int:
        """Blocks that would become free if these requests let go of theirs."""
        lost = Counter(block for r in request_ids for block in self._tables.get(r, ()))
        kept = set(adopted)
        return sum(n == self._holders[block] and block not in kept for block, n in lost.items())

    def next_free(self, n: int, adopted: Iterable[int] = ()) -> tuple[int, ...]:
        """The `n` blocks that would be handed out next, if `adopted` were held by then."""
        kept = set(adopted)
        evictable = (block for block in self._cached if block not in kept)
        return tuple(islice(chain(self._blank, evictable), n))

    def is_pinned(self, blocks: Iterable[int]) -> bool:
        """Whether a step in flight reads or writes one of the blocks."""
        return any(block in self._pins for block in blocks)

    def adopt(self, request_id: str, blocks: Sequence[int]) -> None:
        """Begin the table of a request that holds nothing with published blocks."""
        if request_id in self._tables:
            raise LedgerError(f"request {request_id!r} already holds blocks; adopt comes first")
        for block in blocks:
            if block not in self._key_of:
                raise LedgerError(f"request {request_id!r} adopts block {block}: not published")
            self._cached.pop(block, None)
            self._holders[block] += 1
        if blocks:
            self._tables[request_id] = list(blocks)

    def extend(self, request_id: str, n: int) -> None:
        """Append `n` blocks to a request's table. Raises `LedgerError` when fewer are free."""
        if not 0 <= n <= self.num_free:
            raise LedgerError(
                f"request {request_id!r} asked for n={n} blocks: "
                f"expected at most the {self.num_free} free of {self.num_blocks}"
            )
        table = self._tables.setdefault(request_id, []) if n else []
        for block in self.next_free(n):
            if self._blank:
                self._blank.popleft()
            else:
                del self._cached[block]
                del self._block_of[self._key_of.pop(block)]
                self.num_evictions += 1
                self._dropped.append(block)
            self._holders[block] += 1
            table.append(block)

    def publish(self, request_id: str, keys: Sequence[str]) -> None:
        """Say that the request's first `len(keys)` blocks hold these prefixes in full.

        From the next step on they may be adopted: every rank runs its steps in order on one
        stream, so whoever adopts a block reads it after the step that wrote it. A prefix that is
        published already stays where it is.
        """
        table = self._tables.get(request_id, [])
        if len(keys) > len(table):
            raise LedgerError(f"{request_id!r} publishes {len(keys)} of {len(table)} blocks")
        for block, key in zip(table, keys, strict=False):
            if key not in self._block_of and block not in self._key_of:
                self._block_of[key], self._key_of[block] = block, key

    def release(self, request_id: str) -> None:
        """Take back every block of a request; last block first, so that prefixes last longest."""
        for block in reversed(self._tables.pop(request_id, [])):
            self._holders[block] -= 1
            if self._holders[block]:
                continue
            del self._holders[block]
            if block in self._key_of:
                self._cached[block] = None
            else:
                self._blank.append(block)
                self._dropped.append(block)

    def take_dropped(self) -> tuple[int, ...]:
        """Blocks whose contents became worthless since the last call."""
        dropped, self._dropped = tuple(self._dropped), []
        return dropped

    def pin(self, blocks: Iterable[int]) -> None:
        """A step that reads or writes the blocks was submitted."""
        self._pins.update(blocks)

    def unpin(self, blocks: Iterable[int]) -> None:
        """The result of such a step was taken."""
        for block in blocks:
            if not self._pins[block]:
                raise LedgerError(f"block {block} was unpinned more often than pinned")
            self._pins[block] -= 1
            if not self._pins[block]:
                del self._pins[block]

    @property
    def pinned(self) -> Counter[int]:
        """Block -> steps in flight that read or write it."""
        return Counter(self._pins)

    def check_integrity(self) -> None:
        """Raise `LedgerError` unless free + held is every block once and all counts agree."""
        held = Counter(block for table in self._tables.values() for block in table)
        if held != self._holders:
            raise LedgerError(f"KV blocks: tables say {held}, the count says {self._holders}")
        if sorted([*self._blank, *self._cached, *held]) != list(range(self.num_blocks)):
            raise LedgerError(
                "KV blocks do not balance: "
                f"blank={list(self._blank)} + cached={list(self._cached)} + held={self._tables} "
                f"!= every block in [0, {self.num_blocks}) once"
            )
        if {key: block for block, key in self._key_of.items()} != self._block_of:
            raise LedgerError("KV blocks: published keys and blocks are not one to one")
        if set(self._blank) & set(self._key_of) or not set(self._cached) <= set(self._key_of):
            raise LedgerError("KV blocks: a blank block is published or a cached one is not")
        if any(len(set(table)) != len(table) for table in self._tables.values()):
            raise LedgerError(f"KV blocks: a table names a block twice: {self._tables}")

"""Prompt lengths by boundary class: one table names, draws and recognises every class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """The lengths at which an engine changes what it does, in tokens."""

    chunk: int
    """Largest piece of a prompt in a chunked cell."""
    budget: int
    """Tokens of one step in a whole cell; equal to `chunk` where there is one budget."""
    block_size: int
    """Tokens of one KV block."""
    max_len: int
    """Longest prompt a case may hold."""

    def __post_init__(self) -> None:
        for name in ("chunk", "budget", "block_size", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1 token")


Predicate = Callable[[int, Edges], bool]

ONE_TOKEN = "one token"
THREE_CHUNKS = "three chunks or more"
SINGLE_CHUNK = "one chunk"
NEAR_MAXIMUM = "near the maximum"
EQUAL_LENGTHS = "equal lengths"
DUPLICATES = "duplicate prompts"
SHORT_AND_LONG = "one chunk beside three"

LENGTH_CLASSES: Mapping[str, Predicate] = {
    ONE_TOKEN: lambda n, _: n == 1,
    SINGLE_CHUNK: lambda n, e: 1 < n <= e.chunk,
    THREE_CHUNKS: lambda n, e: n > 2 * e.chunk,
    # A prompt that is not split has no remainder to go wrong, hence `n > chunk`.
    "length = 0 mod chunk": lambda n, e: n > e.chunk and n % e.chunk == 0,
    "length = 1 mod chunk": lambda n, e: n > e.chunk and n % e.chunk == 1,
    "length = chunk-1 mod chunk": lambda n, e: n > e.chunk and n % e.chunk == e.chunk - 1,
    "length < budget": lambda n, e: n == e.budget - 1,
    "length = budget": lambda n, e: n == e.budget,
    "length > budget": lambda n, e: n == e.budget + 1,
    "length = 0 mod block": lambda n, e: n % e.block_size == 0,
    "length = 1 mod block": lambda n, e: n > 1 and n % e.block_size == 1,
    "length = block-1 mod block": lambda n, e: n % e.block_size == e.block_size - 1,
    "length = 31": lambda n, _: n == 31,  # below, at and above a tile of 32 rows
    "length = 32": lambda n, _: n == 32,
    "length = 33": lambda n, _: n == 33,
    NEAR_MAXIMUM: lambda n, e: e.max_len - 1 <= n <= e.max_len,
}
"""Classes of one prompt's length."""

CASE_CLASSES = (EQUAL_LENGTHS, DUPLICATES, SHORT_AND_LONG)
"""Classes of a case's prompts taken together."""


@lru_cache(maxsize=256)
def candidates(name: str, edges: Edges) -> tuple[int, ...]:
    """Every length of a class up to the maximum, ascending; empty when the class cannot occur."""
    predicate = LENGTH_CLASSES[name]
    return tuple(n for n in range(1, edges.max_len + 1) if predicate(n, edges))


def length_classes(edges: Edges) -> tuple[str, ...]:
    """The classes that some length up to the maximum belongs to."""
    return tuple(name for name in LENGTH_CLASSES if candidates(name, edges))


def boundaries_of(
    lengths: Sequence[int], edges: Edges, prompts: Sequence[object] = ()
) -> tuple[str, ...]:
    """Names of the classes a case hits, in the tables' order.

    `prompts` are compared with each other to find duplicates; leave them out to judge lengths only.
    """
    hit = [
        name
        for name, predicate in LENGTH_CLASSES.items()
        if any(predicate(length, edges) for length in lengths)
    ]
    if len(set(lengths)) < len(lengths):
        hit.append(EQUAL_LENGTHS)
    if any(a == b for i, a in enumerate(prompts) for b in prompts[:i]):
        hit.append(DUPLICATES)
    if SINGLE_CHUNK in hit and THREE_CHUNKS in hit:
        hit.append(SHORT_AND_LONG)
    return tuple(hit)

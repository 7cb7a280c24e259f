"""What is scored, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A text and where the client wrote it."""

    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One score for each pair, in order, and the tokens that they took."""

    values: tuple[float, ...]
    num_tokens: int

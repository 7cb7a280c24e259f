"""A prompt's tokens as text, each with its heat: what the drawings beside it are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.html.heat import Heat

BEFORE, AFTER = 120, 280
"""Tokens shown around the first that differs; a long prompt is cut to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One token. `step` is that of its error, `chunk` whether a chunk begins with it."""

    index: int
    text: str
    step: int
    chunk: bool
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptShape:
    pieces: tuple[Piece, ...]
    before: int
    after: int
    """Tokens left out on either side."""


def draw_prompt(
    pieces: Sequence[str], errors: Sequence[float], edges: Sequence[int], first: int | None
) -> PromptShape | None:
    """None where the tokens' text or their errors are not known."""
    if not pieces or len(pieces) != len(errors):
        return None
    heat, begins = Heat.of(errors), set(edges)
    start = max(0, (first or 0) - BEFORE)
    end = min(len(pieces), start + BEFORE + AFTER)
    return PromptShape(
        pieces=tuple(
            Piece(
                index=i,
                text=pieces[i] or " ",
                step=heat.step(errors[i]),
                chunk=i in begins,
                first=i == first,
            )
            for i in range(start, end)
        ),
        before=start,
        after=len(pieces) - end,
    )

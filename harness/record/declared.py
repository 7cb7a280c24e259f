"""What a checkpoint's cases and cells were to reach, said before any of them ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRecord:
    """One part of one checkpoint's work. What was reached is counted from the pairs judged."""

    kind: ClassVar[str] = "declared"
    checkpoint: str
    boundaries: tuple[str, ...] = ()
    """Boundary classes that its cases are aimed at."""
    strength: int = 0
    """Values of different axes in a combination; 0: the cells come from no covering array."""
    axes: tuple[str, ...] = ()
    """The axes of the array."""
    combinations: tuple[tuple[str, ...], ...] = ()
    """Each as `AXIS=VALUE` in the order of the axes: all that some cell has which can start."""

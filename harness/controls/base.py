"""What is known of a control: a difference of arithmetic that a correct engine may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from harness.faults.plant import Apply, Plant, declared


class Where(StrEnum):
    """The cells that a control changes; what it leaves alone is compared with what it changes."""

    EVERYWHERE = "every cell"
    EAGER = "eager cells"
    COMPILED = "compiled cells"
    CHUNKED = "eager, chunked cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(Plant):
    """One legitimate difference: a plug-in on the seams that faults use. No check may flag it.

    No strategy, judge, search, attribution or localisation reads this.
    """

    difference: str
    """What is computed otherwise."""
    allowed: str
    """Why a correct engine may: who does, or what the definition leaves open."""
    where: Where
    dtype: str = "float32"
    sure: bool = True
    """False: whether a bit changes is up to the kernels that this machine's library picks."""


def control(
    *,
    name: str,
    difference: str,
    allowed: str,
    where: Where,
    checkpoint: str = "tiny-qwen3",
    dtype: str = "float32",
    sure: bool = True,
) -> Callable[[Apply], Control]:
    """Makes `apply(runner) -> undo` a Control that goes by the function's own place and name."""
    return declared(
        Control,
        name=name,
        difference=difference,
        allowed=allowed,
        where=where,
        checkpoint=checkpoint,
        dtype=dtype,
        sure=sure,
    )

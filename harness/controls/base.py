"""What is known of a control: a difference of arithmetic that a correct engine may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.faults.base import Apply, Undo

if TYPE_CHECKING:  # the table of controls is read without loading torch
    from engine.runner import Runner


class Where(StrEnum):
    """The cells that a control changes; what it leaves alone is compared with what it changes."""

    EVERYWHERE = "every cell"
    EAGER = "eager cells"
    COMPILED = "compiled cells"
    CHUNKED = "eager, chunked cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One legitimate difference: a plug-in on the seams that faults use. No check may flag it.

    No strategy, judge, search, attribution or localisation reads this.
    """

    name: str
    plugin: str
    """`module:callable`, importable by spawned workers."""
    difference: str
    """What is computed otherwise."""
    allowed: str
    """Why a correct engine may: who does, or what the definition leaves open."""
    where: Where
    checkpoint: str = "tiny-qwen3"
    dtype: str = "float32"

    def __call__(self, runner: Runner) -> Undo:
        """Apply to one rank: a control is itself the plug-in that its `plugin` names."""
        return _CALLABLES[self.plugin](runner)


_CALLABLES: dict[str, Apply] = {}
"""Plug-in -> what applies it; filled as the modules of controls are imported."""


def control(
    *,
    name: str,
    difference: str,
    allowed: str,
    where: Where,
    checkpoint: str = "tiny-qwen3",
    dtype: str = "float32",
) -> Callable[[Apply], Control]:
    """Makes `apply(runner) -> undo` a Control that goes by the function's own place and name."""

    def declare(apply: Apply) -> Control:
        made = Control(
            name=name,
            plugin=f"{apply.__module__}:{apply.__name__}",
            difference=difference,
            allowed=allowed,
            where=where,
            checkpoint=checkpoint,
            dtype=dtype,
        )
        _CALLABLES[made.plugin] = apply
        return made

    return declare

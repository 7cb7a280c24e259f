"""What faults and controls have in common: a plug-in put on an engine's seam, and taken off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # the tables of faults and controls are read without loading torch
    from engine.runner import Runner

Undo = Callable[[], None]
Apply = Callable[["Runner"], Undo]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """Something that can be planted, and the checkpoint whose ordinary cases are to meet it."""

    name: str
    plugin: str
    """`module:callable`, importable by spawned workers."""
    checkpoint: str = "tiny-qwen3"

    def __call__(self, runner: Runner) -> Undo:
        """Apply to one rank: a plant is itself the plug-in that its `plugin` names."""
        return _CALLABLES[self.plugin](runner)


_CALLABLES: dict[str, Apply] = {}
"""Plug-in -> what applies it; filled as the modules of faults and controls are imported."""

P = TypeVar("P", bound=Plant)


def declared(made: Callable[..., P], /, **known: Any) -> Callable[[Apply], P]:
    """Makes `apply(runner) -> undo` a plant that goes by the function's own place and name."""

    def declare(apply: Apply) -> P:
        plant = made(plugin=f"{apply.__module__}:{apply.__name__}", **known)
        _CALLABLES[plant.plugin] = apply
        return plant

    return declare


def replace_method(owner: object, name: str, value: object) -> Undo:
    """Put `value` on the instance in place of what it has or inherits; returns the undo."""
    own = vars(owner)
    if name not in own:
        setattr(owner, name, value)
        return lambda: delattr(owner, name)
    before = own[name]
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before)

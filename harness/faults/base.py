"""What is known of a planted fault. Read after the verdict only (law 8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted defect: a plug-in on a named seam of the engine.

    `exposed_by` and `masked_by` are what a run is expected to find, as `axis=value` sets; no
    strategy, judge, search, attribution or localisation ever reads them.
    """

    name: str
    plugin: str
    """`module:callable`, importable by spawned workers."""
    mechanism: str
    sources: tuple[str, ...]
    """Public ids of the bug."""
    exposed_by: tuple[frozenset[str], ...]
    """Minimal failing sets expected under a lagging device."""
    conditions: str
    masked_by: tuple[str, ...]
    magnitude: str


def replace_method(owner: Any, name: str, method: Callable[..., Any]) -> Callable[[], None]:
    """Put `method` on the instance in place of its class's; returns the undo."""

    def undo() -> None:
        delattr(owner, name)

    setattr(owner, name, method)
    return undo

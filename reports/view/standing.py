"""How a word for the standing of a failure looks: one table for changes and fates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reports.fates import Fate
from reports.view.changes import Change


@dataclass(frozen=True, slots=True)
class Standing:
    """A shape, so that no colour has to tell; `css` is the class of the state it is coloured as."""

    glyph: str
    css: str
    style: str
    """In a terminal."""


STANDINGS: Mapping[Change | Fate, Standing] = {
    Change.NEW: Standing("✕", "fail", "bold red"),
    Change.EXPIRED: Standing("✕", "fail", "bold red"),
    Change.STILL: Standing("✕", "error", "red"),
    Change.FLAKY: Standing("≈", "vacuous", "yellow"),
    Change.FIXED: Standing("✓", "pass", "green"),
    Fate.PASSES: Standing("✓", "pass", "dim"),
    Change.UNSEEN: Standing("·", "absent", "dim"),
    Fate.UNTOLD: Standing("·", "absent", "dim"),
}
"""By the word itself: where a change and a fate go by the same word, they look the same."""

"""How a comparison ends, what it compares, and how strictly; the exit code that follows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Outcome(StrEnum):
    """The five ways a comparison can end."""

    PASS = "PASS"
    FAIL = "FAIL"
    ERROR = "ERROR"
    """A side crashed, hung or was refused, or the pair cannot attest what it must share."""
    VACUOUS = "VACUOUS"
    """An axis should have acted and did not, nothing was compared, or the model is blind."""
    INAPPLICABLE = "INAPPLICABLE"
    """Known from case and plan before the run: the axis cannot act on this case."""


class Tier(StrEnum):
    """How close two runs must be (design: judge)."""

    EXACT = "exact"
    REORDERED = "reordered"
    KERNEL = "kernel"


class Comparison(StrEnum):
    """Which two runs a pair compares."""

    BASELINE = "baseline"
    """A cell against the lattice's baseline cell."""
    EDGE = "edge"
    """Two cells one axis apart."""
    SETTING = "setting"
    """The same cell under another stream policy, input buffer or executor."""
    ORACLE = "oracle"
    """The baseline cell against the float64 oracle."""
    RELATION = "relation"
    """A run against a follow-up of it in the same cell (`RelationRecord`)."""


class Expectation(StrEnum):
    """What a relation says of a follow-up's answers."""

    SAME = "same"
    OTHER = "other"
    """Another question: its answers differ, and are the right ones for it."""


def exit_code(counts: Mapping[str, int]) -> int:
    """1 any FAIL; else 2 any ERROR; else 3 any VACUOUS or nothing passed; else 0."""
    if counts.get(Outcome.FAIL, 0):
        return 1
    if counts.get(Outcome.ERROR, 0):
        return 2
    if counts.get(Outcome.VACUOUS, 0) or not counts.get(Outcome.PASS, 0):
        return 3
    return 0

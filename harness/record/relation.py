"""What was asked of a system beside a case: its follow-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.record.json_data import Json
from harness.record.outcome import Expectation, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which of a follow-up's outputs answers for which of the case's."""

    prompt: int
    follow_up: int
    rows: int | None = None
    """Compare this many first rows of a token-level output; None: all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRecord:
    """One follow-up of a case: what was asked, and what its answers must be like."""

    kind: ClassVar[str] = "relation"
    case_id: str
    checkpoint: str
    relation: str
    variant: str
    tier: Tier
    expects: Expectation
    of: str
    """Execution id of the case's own run."""
    follow_up: str
    """Execution id of the follow-up."""
    truth: str = ""
    """Execution id of float64's answers to the follow-up; empty: the case's own answers hold."""
    case: Mapping[str, Json]
    """`Case.to_json()` of the follow-up."""
    matches: tuple[Match, ...]
    same_plan: bool = False
    asked_before: int = 0
    """Requests that the same instance answered in between."""

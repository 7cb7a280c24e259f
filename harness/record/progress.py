"""What a run says about itself on the way, and its last line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRecord:
    """Something the reader must know: a checkpoint that could not be fetched, a budget reached."""

    kind: ClassVar[str] = "notice"
    text: str
    detail: str = ""
    """For whoever debugs, such as a traceback; reports leave it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRecord:
    """Last line of a run that was not killed."""

    kind: ClassVar[str] = "end"
    finished: str
    exit_code: int
    counts: Mapping[str, int]
    """Outcome -> pairs."""
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    """Where the time went: engine, oracle, power, start-up, judge, records."""

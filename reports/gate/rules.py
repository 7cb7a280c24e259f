"""What a run must show to pass the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reports.ledger import KnownFinding


class RulesError(ValueError):
    """A rules file that cannot be read: the message names the file, the key and what is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a whole run. The defaults are the strictest there are, but for amounts."""

    profiles: tuple[str, ...] = ()
    """The run's profile must be one of these; empty: any."""
    max_errors: int = 0
    """Comparisons, and parts of the run, that ended in an error."""
    max_vacuous: int = 0
    max_warnings: int | None = None
    """Comparisons that carry a warning; None: any number."""
    min_cases: int = 1
    """Judged cases, over all checkpoints."""
    min_cells: float = 1.0
    """Share of the cells that can start which must be judged, per checkpoint; 0 to 1."""
    min_edges: float = 1.0
    """The same of the edges between them."""
    allow_plants: bool = False
    """Whether a run with planted faults may be gated at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One rules file."""

    source: str
    """Its path, as it was named."""
    limits: Limits = field(default_factory=Limits)
    checkpoints: Mapping[str, int] = field(default_factory=dict)
    """Checkpoint that must have been run -> its least number of judged cases."""
    known: tuple[KnownFinding, ...] = ()

"""What all errors of a run have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.record.outcome import Outcome, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRecord:
    """The mean signed error of a run along one axis, against its budget.

    `mean`, its 99 % interval `low` to `high` and `budget` are shares of the noise of one answer.
    """

    kind: ClassVar[str] = "drift"
    checkpoint: str
    axis: str
    tier: Tier
    metric: str
    """norm, similarity, or the kind of score."""
    outcome: Outcome
    reason: str
    samples: int
    """Distinct prompts."""
    mean: float
    low: float
    high: float
    budget: float

"""What was judged: measurements against their bounds, proof of power, pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.record.outcome import Comparison, Outcome, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One number of a comparison, its bound (None: informative only) and where that comes from."""

    metric: str
    value: float
    bound: float | None = None
    unit: str = ""
    why: str = ""

    @property
    def exceeded(self) -> bool:
        """NaN never counts as within a bound."""
        return self.bound is not None and not self.value <= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRecord:
    """Proof that a case's baseline output moves when its input does."""

    kind: ClassVar[str] = "power"
    case_id: str
    checkpoint: str
    movements: tuple[Measurement, ...]
    """Relative movement for each perturbation; bound = what blindness would look like."""
    blind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRecord:
    """One judged comparison of two executions of the same case."""

    kind: ClassVar[str] = "pair"
    pair_id: str
    case_id: str
    checkpoint: str
    task: str
    comparison: Comparison
    axes: tuple[str, ...]
    """Names of the axes the two sides declare to differ in."""
    a: str
    """Execution id of the reference side (`oracle` for the oracle)."""
    b: str
    cell_a: Mapping[str, str]
    cell_b: Mapping[str, str]
    settings: Mapping[str, str]
    """Settings of side b."""
    tier: Tier
    outcome: Outcome
    reason: str
    """One sentence a person can act on; empty for a plain PASS."""
    num_compared: int
    """Elements compared. PASS with 0 does not construct."""
    measurements: tuple[Measurement, ...] = ()
    warnings: tuple[str, ...] = ()
    worst_prompt: int | None = None
    """Index of the prompt with the largest error."""

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASS and self.num_compared < 1:
            raise ValueError(
                f"pair {self.pair_id}: PASS needs at least one compared element, got "
                f"num_compared={self.num_compared}; use VACUOUS"
            )

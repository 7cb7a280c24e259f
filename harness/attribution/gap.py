"""Whether two runs of a case differ: one rule for the search, looser than the judge's.

The judge's bounds decide what is a failure. The search must not wander off to a case whose error
is borderline, so it asks for twice the oracle bound: two runs that are each within the bound of
float64 are at most that far apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from harness.judge import checks
from harness.judge.bounds import Bounds
from harness.judge.metrics import bit_difference, error
from harness.judge.output import Outputs
from harness.judge.subject import Subject
from harness.record import Tier

LIMIT_FACTOR = 2.0
"""By the triangle inequality: one oracle bound for each side."""


class Limits(Protocol):
    """How far apart two outputs of one prompt may be under the reordered and kernel tiers."""

    def limit(self, subject: Subject, tier: Tier, prompt: int) -> float:
        """In the unit of the kind's error."""
        ...


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The bounds of the run that found the failure."""

    bounds: Bounds

    def limit(self, subject: Subject, tier: Tier, prompt: int) -> float:
        return LIMIT_FACTOR * self.bounds.bound(tier, subject.key(prompt)).oracle


@dataclass(frozen=True, slots=True)
class FixedLimits:
    """A limit read from a finding, so that a replay needs nothing else of its run."""

    value: float

    def limit(self, subject: Subject, tier: Tier, prompt: int) -> float:  # noqa: ARG002
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Distance of two runs of one case."""

    value: float
    """The kind's error of the worst prompt; infinite where the structure differs."""
    limit: float
    """0 in the exact tier, where any differing bit counts."""
    differs: bool
    note: str


def gap(subject: Subject, tier: Tier, a: Outputs, b: Outputs, limits: Limits) -> Gap:
    """How far `b` is from `a`, and whether that is too far in this tier."""
    broken = checks.structure(subject, a, b) or checks.finite("B", b)
    if broken is not None:
        return Gap(value=float("inf"), limit=0.0, differs=True, note=broken)
    errors = [error(subject.kind, y, x) for x, y in zip(a, b, strict=True)]
    if tier is Tier.EXACT:
        bits = sum(bit_difference(x, y).differing for x, y in zip(a, b, strict=True))
        note = f"{bits} elements differ in their bits" if bits else ""
        return Gap(value=max(errors), limit=0.0, differs=bits > 0, note=note)
    allowed = [limits.limit(subject, tier, index) for index in range(len(errors))]
    far = [not e <= limit for e, limit in zip(errors, allowed, strict=True)]
    order = sorted(range(len(errors)), key=lambda i: (far[i], errors[i]), reverse=True)
    worst = order[0]
    note = f"prompt {worst}: {subject.kind.metric} {errors[worst]:.3g}" if any(far) else ""
    return Gap(value=errors[worst], limit=allowed[worst], differs=any(far), note=note)


def furthest(subject: Subject, a: Outputs, b: Outputs) -> int | None:
    """The prompt whose output in `b` is furthest from that in `a`; None where none can be told."""
    if checks.structure(subject, a, b) is not None or not a:
        return None
    errors = [error(subject.kind, y, x) for x, y in zip(a, b, strict=True)]
    if not any(errors):  # too small for the error's own arithmetic, but not for its bits
        errors = [float(bit_difference(x, y).differing) for x, y in zip(a, b, strict=True)]
    far = [float("inf") if math.isnan(value) else value for value in errors]
    return far.index(max(far)) if any(far) else None

"""The three distances of one prompt: between the two runs, and of each from float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.judge.bounds import Bound, Bounds
from harness.judge.metrics import error
from harness.judge.output import OutputKind, Outputs
from harness.judge.subject import Subject
from harness.judge.tolerance import BucketKey
from harness.record import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """Of one prompt under one kind, all in units of the oracle's norm."""

    key: BucketKey
    prompt: int
    apart: float
    a: float
    b: float
    bound: Bound

    @property
    def kind(self) -> OutputKind:
        return self.key.kind

    @property
    def beyond_oracle(self) -> bool:
        """A side is too far from float64, and the two do not share that error.

        Two wrong cells that agree are no finding of the axis between them: each is compared with
        the baseline as well. A side within bound / k and one beyond the bound are always further
        apart than this share of it, so no such pair is let through.
        """
        limit = self.bound.oracle
        far = not max(self.a, self.b) <= limit
        return far and not self.apart <= limit * self.bound.share

    @property
    def beyond_null(self) -> bool | None:
        """Further apart than known-good runs ever were; None when that was not measured."""
        return None if self.bound.null is None else not self.apart <= self.bound.null

    @property
    def failed(self) -> bool:
        return self.beyond_oracle and self.beyond_null is not False

    @property
    def severity(self) -> float:
        return max(self.a, self.b) / self.bound.oracle if self.bound.oracle else self.apart

    @property
    def needed(self) -> float:
        """The least oracle bound under which this prompt does not fail."""
        excused = self.apart / self.bound.share if self.bound.share else float("inf")
        if self.bound.known_good is not None and self.apart <= self.bound.known_good:
            excused = min(excused, self.apart)
        return min(max(self.a, self.b), excused)


def distances(
    subject: Subject, tier: Tier, a: Outputs, b: Outputs, oracle: Outputs, bounds: Bounds
) -> Mapping[OutputKind, Sequence[Distances]]:
    """Every prompt's, under each kind that its output is held to."""
    found: dict[OutputKind, list[Distances]] = {}
    for kind in subject.kinds:
        for index, (x, y, o) in enumerate(zip(a, b, oracle, strict=True)):
            key = subject.key(index, kind)
            found.setdefault(kind, []).append(
                Distances(
                    key=key,
                    prompt=index,
                    apart=error(kind, y, x, scale=o),
                    a=error(kind, x, o),
                    b=error(kind, y, o),
                    bound=bounds.bound(tier, key),
                )
            )
    return found


def furthest(prompts: Sequence[Distances]) -> Distances:
    """The one furthest beyond its bound, of those that fail if any does."""
    return max(prompts, key=lambda p: (p.failed, p.severity))

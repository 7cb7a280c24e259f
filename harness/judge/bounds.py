"""The bounds of a run: the tolerance table applied to what this run and past ones measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.judge.calibration import Calibration
from harness.judge.metrics import error
from harness.judge.output import Outputs
from harness.judge.rules import Rules
from harness.judge.subject import Subject
from harness.judge.tolerance import (
    BUCKET_NAMES,
    QUANTILE,
    BucketKey,
    power_factor,
)
from harness.record import Tier


class OracleErrors:
    """Owns: the baseline's errors against float64 in this run, by bucket. Grows, never forgets.

    Add every baseline of a checkpoint before judging its pairs: a bound taken early rests on
    fewer samples and is tighter.
    """

    def __init__(self) -> None:
        self._errors: dict[BucketKey, list[float]] = {}
        self._percentiles: dict[BucketKey, float] = {}

    def add(self, key: BucketKey, error: float) -> None:
        """One prompt's error; an infinite or NaN one is the oracle pair's business, not a scale."""
        if np.isfinite(error):
            self._errors.setdefault(key, []).append(float(error))
            self._percentiles.clear()

    def observe(self, subject: Subject, baseline: Outputs, oracle: Outputs) -> None:
        """Add the error of every prompt of a case whose two outputs have the same shape."""
        if len(baseline) != len(oracle):
            return  # the pairs of this case say what is missing
        for index, (mine, truth) in enumerate(zip(baseline, oracle, strict=True)):
            if mine.shape == truth.shape and mine.size:
                for kind in subject.kinds:
                    self.add(subject.key(index, kind), error(kind, mine, truth))

    def samples(self, key: BucketKey) -> Sequence[float]:
        """Errors of the bucket and of the shorter ones of the same checkpoint, dtype and kind.

        Rounding errors do not shrink as prompts grow, so the shorter buckets' errors are lower
        bounds of this one's and steady its percentile while it has few samples of its own.
        """
        upto = BUCKET_NAMES[: BUCKET_NAMES.index(key.bucket) + 1]
        return [e for bucket in upto for e in self._errors.get(key._replace(bucket=bucket), ())]

    def bound(self, key: BucketKey, k: float, floor: float) -> float:
        """k x the 99.9th percentile (the largest, below 1,000 samples), at least `floor`."""
        if key not in self._percentiles:
            samples = self.samples(key) or [0.0]
            self._percentiles[key] = float(np.quantile(samples, QUANTILE, method="higher"))
        return max(floor, k * self._percentiles[key])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What one prompt's error may be, and why."""

    oracle: float
    null: float | None
    """At most the oracle bound, which a null may sharpen and never widen."""
    why: str
    k: float
    null_why: str = ""
    known_good: float | None = None
    """The null as it was measured, however large."""

    @property
    def share(self) -> float:
        """The part of the oracle bound that two sides are apart at least when one is beyond it
        and the other within bound / k."""
        return (self.k - 1) / self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Owns nothing; joins the calibration, the table and the run's oracle errors."""

    errors: OracleErrors = field(default_factory=OracleErrors)
    calibration: Calibration = field(default_factory=Calibration.load)
    rules: Rules = field(default_factory=Rules)

    def bound(self, tier: Tier, key: BucketKey) -> Bound:
        """The bounds of a bucket. The null applies to the reordered tier only."""
        rule = self.rules.tolerance(tier, key)
        count = len(self.errors.samples(key))
        oracle = self.errors.bound(key, rule.k, rule.floor)
        why = (
            f"max({rule.floor:.3g}, {rule.k:g} x q{100 * QUANTILE:g} of {count} baseline errors "
            f"against float64) for {key.kind}, {key.dtype}, {key.bucket} tokens"
        )
        stored = self.calibration.baseline_error(key)
        if stored is not None and rule.k * stored.quantile > oracle:
            oracle = rule.k * stored.quantile
            why = (
                f"{rule.k:g} x q{100 * QUANTILE:g} of {stored.count} baseline errors measured by "
                f"`{stored.command}` for {key.kind}, {key.dtype}, {key.bucket} tokens"
            )
        null = self.calibration.null(key) if tier is Tier.REORDERED else None
        if tier is Tier.REORDERED and null is None:
            why += "; no null measured for this bucket, so the oracle bound stands alone"
        if null is None:
            return Bound(oracle=oracle, null=None, why=why, k=rule.k)
        return Bound(
            oracle=oracle,
            null=min(rule.null_factor * null.quantile, oracle),
            known_good=rule.null_factor * null.quantile,
            why=why,
            k=rule.k,
            null_why=(
                f"min(oracle bound, {rule.null_factor:g} x q{100 * QUANTILE:g} of {null.count} "
                f"known-good pairs, {null.quantile:.3g}), seed {null.seed}, `{null.command}`"
            ),
        )

    def power(self, key: BucketKey) -> float:
        """The movement below which an output is blind."""
        return power_factor(key.dtype) * self.bound(Tier.REORDERED, key).oracle

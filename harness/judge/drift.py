"""The drift budget of a run: many errors that are each allowed, all to one side.

Rounding errors have no preferred sign, a defect often does: a mask that lets a little through, an
epsilon that is another. Over a run the mean signed error is known far better than any single one,
so it is held to half the noise of a single answer, by its 99 % interval.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from harness.judge.bounds import Bounds
from harness.judge.output import Float64, Output, OutputKind, Outputs
from harness.judge.subject import Subject
from harness.record import DriftRecord, Outcome, Tier

BUDGET = 0.5
"""Of the noise: the largest error that 99.9 % of the baseline's answers keep, or its floor."""
NORMAL_99 = 2.5758
"""Two-sided 99 % quantile of the normal distribution."""
MIN_SAMPLES = 30
"""Prompts below which the interval of a mean says little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    checkpoint: str
    axis: str
    tier: Tier
    metric: str


@dataclass(slots=True)
class DriftBudget:
    """Owns: the signed errors of one checkpoint in one run, in units of the noise.

    A prompt is one sample however many cells repeat it: its errors along an axis are averaged.
    """

    bounds: Bounds
    _errors: dict[_Group, dict[tuple[str, int], list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, subject: Subject, axis: str, tier: Tier, a: Outputs, b: Outputs) -> None:
        """The errors of side B against side A, of a pair that was compared."""
        if tier is Tier.EXACT:
            return  # one differing bit has failed already
        for metric, prompt, error in _signed(subject, a, b):
            key = subject.key(prompt)
            rule = self.bounds.rules.tolerance(tier, key)
            noise = self.bounds.bound(tier, key).oracle / rule.k
            group = _Group(checkpoint=subject.checkpoint, axis=axis, tier=tier, metric=metric)
            self._errors[group][subject.case_id, prompt].append(error / noise)

    def records(self) -> Iterator[DriftRecord]:
        """The verdict on each axis and metric that has samples enough."""
        for group, prompts in self._errors.items():
            means = np.array([np.mean(errors) for errors in prompts.values()])
            if len(means) < MIN_SAMPLES:
                continue
            mean = float(np.mean(means))
            half = NORMAL_99 * float(np.std(means, ddof=1)) / math.sqrt(len(means))
            low, high = mean - half, mean + half
            out = not (low <= BUDGET and high >= -BUDGET)
            reason = ""
            if out:
                reason = (
                    f"{group.metric} drifts along {group.axis}: mean signed error {mean:+.3g} of "
                    f"the noise, 99 % interval {low:+.3g} to {high:+.3g}, budget {BUDGET:g}"
                )
            yield DriftRecord(
                checkpoint=group.checkpoint,
                axis=group.axis,
                tier=group.tier,
                metric=group.metric,
                outcome=Outcome.FAIL if out else Outcome.PASS,
                reason=reason,
                samples=len(means),
                mean=mean,
                low=low,
                high=high,
                budget=BUDGET,
            )


def _signed(subject: Subject, a: Outputs, b: Outputs) -> Iterator[tuple[str, int, float]]:
    """(metric, prompt, signed error) of every prompt, each as a relative error."""
    kind = subject.kind
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        if not kind.vector:
            scale = np.maximum(1.0, np.abs(x.float64))
            yield str(kind), index, float(np.mean((y.float64 - x.float64) / scale))
            continue
        norms = (np.linalg.norm(o.rows, axis=-1) for o in (x, y))
        first, second = norms
        if np.all(first > 0):
            yield "norm", index, float(np.mean(second / first - 1.0))
    if kind is OutputKind.EMBEDDING and len(a) > 1:
        for index in range(len(a) - 1):
            old, new = (_cosine(side[index], side[index + 1]) for side in (a, b))
            yield "similarity", index, new - old


def _cosine(x: Output, y: Output) -> float:
    one, other = (_unit(o.float64.reshape(-1)) for o in (x, y))
    return float(one @ other)


def _unit(vector: Float64) -> Float64:
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm else vector

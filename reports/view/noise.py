"""Measured differences against their bounds, as histograms small enough for any number of pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import Measurement
from reports.load import Run
from reports.view.margins import severity
from reports.view.text import quantity, share_of_bound

BINS_PER_DECADE = 4
MAX_BINS = 80
MAX_STRIPS = 200
NUM_NEAR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Values of one metric for one (checkpoint, tier, task); `bins` maps log10 floor to count."""

    checkpoint: str
    tier: str
    task: str
    metric: str
    values: int
    zeros: int
    not_finite: int
    bins: tuple[tuple[float, int], ...]
    """(log10 of the bin's lower edge, values in it)"""
    bin_width: float
    """In decades."""
    bounds: tuple[float, ...]
    """Smallest and largest bound, once if they are equal. The bound may depend on the length."""
    over: int
    median: str
    top: str
    bound: str
    share: str
    severity: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNoise:
    """One checkpoint's bounded metrics, nearest to their bound first."""

    checkpoint: str
    near: tuple[Strip, ...]
    """The few that come nearest: what a reader should look at."""
    rest: tuple[Strip, ...]
    still: tuple[Strip, ...]
    """Those that measured 0 every time: a picture of them says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    checkpoints: tuple[CheckpointNoise, ...]
    more: int

    @property
    def all(self) -> tuple[Strip, ...]:
        return tuple(s for c in self.checkpoints for s in (*c.near, *c.rest, *c.still))


def noise(run: Run) -> Noise:
    groups: dict[tuple[str, str, str, str], list[Measurement]] = {}
    for pair in run.pairs:
        for m in pair.measurements:
            if m.bound is not None:
                key = (pair.checkpoint, str(pair.tier), pair.task, m.metric)
                groups.setdefault(key, []).append(m)
    order = {c.name: i for i, c in enumerate(run.manifest.checkpoints)}
    strips = [_strip(key, ms) for key, ms in groups.items()]
    strips.sort(
        key=lambda s: (
            order.get(s.checkpoint, len(order)),
            s.checkpoint,
            -s.severity,
            s.tier,
            s.task,
            s.metric,
        )
    )
    by_checkpoint: dict[str, list[Strip]] = {}
    for strip in strips[:MAX_STRIPS]:
        by_checkpoint.setdefault(strip.checkpoint, []).append(strip)
    return Noise(
        checkpoints=tuple(_split(name, own) for name, own in by_checkpoint.items()),
        more=max(0, len(strips) - MAX_STRIPS),
    )


def _split(checkpoint: str, strips: Sequence[Strip]) -> CheckpointNoise:
    moving = [s for s in strips if s.zeros != s.values]
    return CheckpointNoise(
        checkpoint=checkpoint,
        near=tuple(moving[:NUM_NEAR]),
        rest=tuple(moving[NUM_NEAR:]),
        still=tuple(s for s in strips if s.zeros == s.values),
    )


def _strip(key: tuple[str, str, str, str], measured: Sequence[Measurement]) -> Strip:
    checkpoint, tier, task, metric = key
    values = sorted(m.value for m in measured if math.isfinite(m.value))
    positive = [v for v in values if v > 0]
    width = _bin_width(positive)
    bounds = sorted({m.bound for m in measured if m.bound is not None})
    top = max(measured, key=lambda m: (severity(m.value, m.bound), m.value))
    unit = top.unit
    ends = (bounds[0], bounds[-1]) if bounds[0] != bounds[-1] else (bounds[0],)
    return Strip(
        checkpoint=checkpoint,
        tier=tier,
        task=task,
        metric=metric,
        values=len(measured),
        zeros=sum(v <= 0 for v in values),
        not_finite=len(measured) - len(values),
        bins=_bins(positive, width),
        bin_width=width,
        bounds=ends,
        over=sum(m.exceeded for m in measured),
        median=quantity(values[len(values) // 2], unit) if values else "none finite",
        top=quantity(top.value, unit),
        bound=" to ".join(quantity(b, unit) for b in ends),
        share=share_of_bound(top.value, top.bound),
        severity=severity(top.value, top.bound),
        why=top.why,
    )


def _bin_width(positive: Sequence[float]) -> float:
    """Decades per bin: a quarter, more where the values span too many decades."""
    if not positive:
        return 1 / BINS_PER_DECADE
    span = math.log10(positive[-1]) - math.log10(positive[0])
    return max(1 / BINS_PER_DECADE, span / MAX_BINS)


def _bins(positive: Sequence[float], width: float) -> tuple[tuple[float, int], ...]:
    counted = Counter(math.floor(math.log10(v) / width) for v in positive)
    return tuple((index * width, n) for index, n in sorted(counted.items()))

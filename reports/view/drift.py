"""Drift: how near the worst values came to their bounds, run after run, below the threshold too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.load import Run
from reports.view.margins import severity
from reports.view.text import number, share_of_bound

MAX_ROWS = 12
GROWN = 2.0
"""Times the baseline's worst value from which a row is marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One metric of one checkpoint and tier: its worst share of the bound in each run."""

    checkpoint: str
    tier: str
    metric: str
    shares: tuple[float | None, ...]
    """Per run, oldest first: value / bound of the worst; None where it was not measured."""
    now: str
    growth: str
    grown: bool


def drift(runs: Sequence[Run], run: Run, baseline: Run) -> tuple[Drift, ...]:
    """Metrics within their bound that moved, those that grew most first."""
    worst = [_worst(r) for r in runs]
    mine, theirs = _worst(run), _worst(baseline)
    rows = []
    for key in mine:
        shares = tuple(w.get(key) for w in worst)
        if mine[key] > 1 or (not mine[key] and not any(shares)):
            continue  # over its bound it is a finding, at 0 throughout it cannot drift
        before = theirs.get(key)
        ratio = _ratio(mine[key], before)
        rows.append((ratio, key, shares, before))
    rows.sort(key=lambda r: (-r[0], -mine[r[1]], r[1]))
    return tuple(
        Drift(
            checkpoint=key[0],
            tier=key[1],
            metric=key[2],
            shares=shares,
            now=share_of_bound(mine[key], 1.0),
            growth=_growth(ratio, before),
            grown=ratio >= GROWN,
        )
        for ratio, key, shares, before in rows[:MAX_ROWS]
    )


def _worst(run: Run) -> dict[tuple[str, str, str], float]:
    found: dict[tuple[str, str, str], float] = {}
    for pair in run.pairs:
        for m in pair.measurements:
            if m.bound is not None and m.bound > 0:
                key = (pair.checkpoint, str(pair.tier), m.metric)
                found[key] = max(found.get(key, 0.0), severity(m.value, m.bound))
    return found


def _ratio(now: float, before: float | None) -> float:
    if before is None:
        return 1.0
    if before <= 0:
        return math.inf if now > 0 else 1.0
    return now / before if math.isfinite(before) else 1.0


def _growth(ratio: float, before: float | None) -> str:
    if before is None:
        return "not in the baseline run"
    if math.isinf(ratio):
        return "was 0"
    return f"{number(ratio)} times" if abs(ratio - 1) >= 0.005 else "as before"

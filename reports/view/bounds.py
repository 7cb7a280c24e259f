"""Exact binomial confidence bounds (Clopper and Pearson, Biometrika 1934)."""

from __future__ import annotations

import math
from collections.abc import Callable

CONFIDENCE = 0.95


def upper(failures: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """One-sided upper bound on a failure probability after `failures` in `trials`.

    With no failure it is 1 - (1 - confidence)^(1/trials); 3/trials approximates it at 95 %
    (the rule of three).
    """
    if trials < 1 or failures >= trials:
        return 1.0
    if failures == 0:
        return -math.expm1(math.log1p(-confidence) / trials)
    return _solve(lambda p: _at_most(failures, trials, p), 1 - confidence)


def interval(failures: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Two-sided bounds on a failure probability."""
    side = 1 - (1 - confidence) / 2
    low = 0.0 if failures == 0 else 1 - upper(trials - failures, trials, side)
    return low, upper(failures, trials, side)


def _at_most(k: int, n: int, p: float) -> float:
    """P(X <= k) for X binomial(n, p); falls as p grows."""
    log_p, log_q = math.log(p), math.log1p(-p)
    return math.fsum(
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(i + 1)
            - math.lgamma(n - i + 1)
            + i * log_p
            + (n - i) * log_q
        )
        for i in range(k + 1)
    )


def _solve(falling: Callable[[float], float], target: float) -> float:
    low, high = 1e-12, 1 - 1e-12
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > target else (low, middle)
    return (low + high) / 2

"""A search for the case that comes nearest to its bounds: Hypothesis climbs, the judge measures.

Ordinary cases aim at boundary classes of lengths. What this adds is a direction: it keeps what made
an error larger against its bound and changes that further, stream interleavings included. It finds
a bound that is too tight, or a defect too small for the ordinary cases, before a user does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis import strategies as st

from harness.case import Case
from harness.record import Outcome, PairRecord

MOST_CHOICES = 24
"""Decisions of a drawn interleaving; the host goes on in order of submission after them."""
CEILING = 1e6
"""Of a ratio, so that an error where none is allowed does not stop the climb."""

Judge = Callable[[Case, Mapping[str, str]], Sequence[PairRecord]]
"""Runs a case in every cell under these settings and judges it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardest:
    """One case and how near it came."""

    case: Case
    settings: Mapping[str, str]
    ratio: float
    """Largest error of its pairs, as a multiple of its bound: above 1 the pair failed."""
    pair: PairRecord
    """The pair that came nearest."""


@dataclass(slots=True)
class Climb:
    """Owns: what one search has seen. `run` it once."""

    strategy: st.SearchStrategy[Case]
    judge: Judge
    inputs: Sequence[str] = ("fenced", "ring")
    tried: int = 0
    untargeted: float = 0.0
    """Largest ratio before the climb began: what as many undirected cases would have shown."""
    failed: dict[str, Hardest] = field(default_factory=dict)
    """Case id -> the failing cases."""
    _best: dict[str, Hardest] = field(default_factory=dict)

    def run(self, *, examples: int, start: int) -> None:
        """Half of about `examples` cases are drawn, the other half climb from the best of them."""
        drawn = max(1, examples // 2)

        @seed(start)
        @settings(
            max_examples=examples,
            phases=(Phase.generate, Phase.target),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(
            case=self.strategy,
            choices=st.lists(st.integers(0, 9), max_size=MOST_CHOICES),
            inputs=st.sampled_from(tuple(self.inputs)),
        )
        def attempt(case: Case, choices: list[int], inputs: str) -> None:
            policy = f"drawn({','.join(map(str, choices))})" if choices else "immediate"
            seen = self._measure(case, {"stream_policy": policy, "inputs": inputs})
            if self.tried <= drawn:
                self.untargeted = max(self.untargeted, seen)
            target(seen, label="error over bound")

        attempt()

    @property
    def hardest(self) -> list[Hardest]:
        """Distinct cases, nearest to their bounds first."""
        return sorted(self._best.values(), key=lambda found: -found.ratio)

    def _measure(self, case: Case, chosen: Mapping[str, str]) -> float:
        self.tried += 1
        pairs = self.judge(case, chosen)
        rated = [(ratio(pair), pair) for pair in pairs]
        if not rated:
            return 0.0
        largest, pair = max(rated, key=lambda found: found[0])
        found = Hardest(case=case, settings=dict(chosen), ratio=largest, pair=pair)
        before = self._best.get(case.case_id)
        if before is None or before.ratio < largest:
            self._best[case.case_id] = found
        if any(p.outcome in (Outcome.FAIL, Outcome.ERROR) for p in pairs):
            self.failed[case.case_id] = found
        return largest


def ratio(pair: PairRecord) -> float:
    """The pair's largest error as a multiple of its bound, at most `CEILING`; 0 without a bound."""
    return max(
        (_ratio(m.value, m.bound) for m in pair.measurements if m.bound is not None), default=0.0
    )


def _ratio(value: float, bound: float) -> float:
    if math.isnan(value):
        return CEILING
    if value <= 0.0:
        return 0.0
    return min(value / bound, CEILING) if bound > 0 else CEILING

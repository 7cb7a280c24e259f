"""The climb finds what undirected cases do not, and says how near it came.

Passes wrongly if cases that are not aimed found the failure just as well. Ruled out by
suites/meta/test_suites_can_fail.py: `nothing-is-aimed-at`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import strategies as st

from harness.case import Case, Prompt
from harness.record import Comparison, Measurement, Outcome, PairRecord, Tier
from harness.search.targeted import CEILING, Climb, ratio

WALL = 900
"""Tokens in all from which the toy fails: few drawn cases reach it."""


def pair(value: float, bound: float | None, outcome: Outcome = Outcome.PASS) -> PairRecord:
    return PairRecord(
        pair_id="p",
        case_id="c",
        checkpoint="toy",
        task="embed",
        comparison=Comparison.BASELINE,
        axes=(),
        a="a",
        b="b",
        cell_a={},
        cell_b={},
        settings={},
        tier=Tier.REORDERED,
        outcome=outcome,
        reason="" if outcome is Outcome.PASS else "too far",
        num_compared=1,
        measurements=(Measurement(metric="error", value=value, bound=bound),),
    )


@st.composite
def toy_cases(draw: st.DrawFn) -> Case:
    lengths = draw(st.lists(st.integers(1, 200), min_size=1, max_size=5))
    return Case(task="embed", prompts=tuple(Prompt(tokens=(7,) * n) for n in lengths))


def total(case: Case) -> int:
    return sum(len(prompt.tokens or ()) for prompt in case.prompts)


def judge(case: Case, chosen: Mapping[str, str]) -> list[PairRecord]:
    assert chosen["inputs"] in ("fenced", "ring")
    near = total(case) / WALL
    return [pair(near, 1.0, Outcome.FAIL if near > 1 else Outcome.PASS), pair(near / 2, 1.0)]


def test_the_climb_goes_where_undirected_cases_do_not() -> None:
    climb = Climb(toy_cases(), judge)
    climb.run(examples=400, start=1)
    assert climb.untargeted < 1.0
    assert climb.hardest[0].ratio > 1.0
    assert total(climb.hardest[0].case) > WALL
    assert set(climb.failed) <= {found.case.case_id for found in climb.hardest}
    assert climb.failed
    ratios = [found.ratio for found in climb.hardest]
    assert ratios == sorted(ratios, reverse=True)


def test_the_same_start_finds_the_same() -> None:
    found = []
    for _ in range(2):
        climb = Climb(toy_cases(), judge)
        climb.run(examples=60, start=5)
        found.append([(h.case.case_id, h.ratio) for h in climb.hardest])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("value", "bound", "expected"),
    [
        (0.5, 2.0, 0.25),
        (0.0, 0.0, 0.0),
        (1e-9, 0.0, CEILING),
        (math.nan, 1.0, CEILING),
        (math.inf, 1.0, CEILING),
        (3.0, None, 0.0),
    ],
)
def test_ratio(value: float, bound: float | None, expected: float) -> None:
    assert ratio(pair(value, bound)) == expected

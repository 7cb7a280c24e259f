"""Rates with their uncertainty, and an interleaving that makes luck a certainty.

Passes wrongly if an interleaving were told under which nothing had failed. Ruled out by
suites/meta/test_suites_can_fail.py: `an-interleaving-is-invented`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.attribution.race import REPEATS, Rate, failing_interleaving, policy
from harness.search import Budget
from suites.unit.attribution.test_find import embed
from suites.unit.attribution.toy import THREADED, Situation, ToySystem, campaign

PLENTY = {"calls": 10_000, "seconds": 60.0}


@pytest.mark.parametrize(
    ("failed", "tried", "low", "high"),
    [
        # statsmodels 0.14, proportion_confint(k, n, method="wilson")
        (0, 20, 0.0, 0.16113),
        (1, 20, 0.00888, 0.23613),
        (10, 20, 0.29929, 0.70071),
        (20, 20, 0.83887, 1.0),
    ],
)
def test_wilsons_interval(failed: int, tried: int, low: float, high: float) -> None:
    assert Rate(failed, tried).interval == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 200), st.data())
def test_the_interval_holds_the_share_and_needed_repeats_suffice(
    tried: int, data: st.DataObject
) -> None:
    rate = Rate(data.draw(st.integers(0, tried)), tried)
    low, high = rate.interval
    assert 0.0 <= low <= rate.failed / tried <= high <= 1.0
    if rate.needed is None:
        assert rate.failed == 0
    else:
        assert 1 - (1 - low) ** rate.needed >= 0.95 - 1e-9
        assert rate.needed == 1 or 1 - (1 - low) ** (rate.needed - 1) < 0.95


def test_the_smallest_interleaving_is_found() -> None:
    """Fails when some decision after the first takes its third option."""
    asked = 0

    def fails(choices: Sequence[int]) -> bool:
        nonlocal asked
        asked += 1
        return any(choice == 2 for choice in choices[1:])

    assert failing_interleaving(fails, Budget(**PLENTY), seed="x") == (0, 2)
    assert asked > 5


def test_no_interleaving_is_invented() -> None:
    assert failing_interleaving(lambda choices: False, Budget(**PLENTY), seed="x") is None
    spent = Budget(calls=0, seconds=60.0)
    assert failing_interleaving(lambda choices: True, spent, seed="x") is None


def test_a_racy_finding_tells_its_rate_and_an_interleaving(tmp_path: Path) -> None:
    luck = random.Random(3)

    def racing(s: Situation) -> float:
        name = s.settings["stream_policy"]
        if name == "threaded":
            return float(s.on("chunk=chunked") and luck.random() < 0.6)
        drawn = name.partition("(")[2].rstrip(")").split(",")
        return float(s.on("chunk=chunked") and "3" in drawn)

    run = campaign(tmp_path, ToySystem(racing), [(embed(70), THREADED)])
    (found,) = run.findings(policies=())
    told = " | ".join(found.conditions)
    assert f"of {REPEATS} repeats (" in told
    assert "repeats show it with 95 %" in told
    assert "fails every time under stream_policy=drawn(3), the smallest interleaving found" in told


def test_a_policy_is_written_as_the_stream_reads_it() -> None:
    assert policy((0, 2)) == "drawn(0,2)"
    assert policy(()) == "immediate"

"""A perturbation is its name: any worker builds the same one from it.

Passes wrongly if a perturbation acted whether its switches are on or not. Ruled out by
suites/meta/test_suites_can_fail.py: `perturbations-need-no-switch`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ConfigurationError
from engine.plan import PlanEntry
from engine.plugins import load_plugin
from harness.faults.perturbation import Perturbation
from harness.trials.explanation import AXES, drawn

PERTURBATIONS = st.builds(
    Perturbation,
    layer=st.integers(0, 99),
    token=st.integers(0, 10_000),
    milli=st.integers(1, 5_000),
    axes=st.sets(st.sampled_from(AXES), min_size=1).map(lambda axes: tuple(sorted(axes))),
)


@given(PERTURBATIONS)
def test_the_name_says_all_of_it(perturbation: Perturbation) -> None:
    assert load_plugin(perturbation.plugin) == perturbation


@pytest.mark.parametrize("name", ["layer1_token2", "layer1_token2_milli3_when_magic"])
def test_another_name_is_no_plugin(name: str) -> None:
    assert Perturbation.parse(name) is None
    with pytest.raises(ConfigurationError, match=name):
        load_plugin(f"harness.faults.perturbation:{name}")


def test_a_seed_draws_the_same_again_and_every_order_in_turn() -> None:
    some = [drawn(seed, num_layers=4, chunk=16) for seed in range(60)]
    assert some == [drawn(seed, num_layers=4, chunk=16) for seed in range(60)]
    assert Counter(len(p.axes) for p in some) == {1: 20, 2: 20, 3: 20}
    assert {p.layer for p in some} == set(range(4))
    assert {p.token // 16 for p in some} == {0, 1, 2}


def test_chunk_is_needed_where_it_is_named() -> None:
    whole = PlanEntry(request_id="0", start=0, count=20, total=20)
    part = PlanEntry(request_id="0", start=16, count=4, total=20)
    plain = Perturbation(layer=0, token=17, milli=1, axes=("pp",))
    chunk = Perturbation(layer=0, token=17, milli=1, axes=("chunk",))
    assert [p.touches(e) for p in (plain, chunk) for e in (whole, part)] == [
        True,
        True,
        False,
        True,
    ]

"""Tolerances say why, belong to a bucket, and never come from the case they judge.

Passes wrongly if bounds were so wide that nothing is ever beyond them. Ruled out by
suites/meta/test_suites_can_fail.py: `bounds-are-as-wide-as-the-answer`.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.axes import Cell
from harness.judge import (
    Bounds,
    BucketKey,
    Calibration,
    Null,
    OracleErrors,
    Output,
    OutputKind,
    Tolerance,
    ToleranceError,
    length_bucket,
)
from harness.judge.tolerance import BUCKET_NAMES, NORM, ORACLE_CAP, POWER_FACTOR, TABLE
from harness.record import Comparison, Outcome, Tier
from suites.unit.axes.witnesses import honest
from suites.unit.judge.pairs import BASE, World, measured, rounded, run

KEY = BucketKey("sample", "float32", OutputKind.EMBEDDING, "33-128")
CHUNK = Cell.parse("chunk=chunked")
COMMAND = "measure nulls of sample, seed 0"


@pytest.mark.parametrize(
    ("length", "bucket"),
    [(1, "1-32"), (32, "1-32"), (33, "33-128"), (128, "33-128"), (512, "129-512"), (513, "513+")],
)
def test_length_buckets(length: int, bucket: str) -> None:
    assert length_bucket(length) == bucket


def test_the_table_covers_every_combination_and_says_why() -> None:
    dtypes = {key[1] for key in TABLE}
    assert len(TABLE) == len(Tier) * len(dtypes) * len(OutputKind) * len(BUCKET_NAMES)
    for tolerance in (*TABLE.values(), *NORM.values(), *ORACLE_CAP.values()):
        assert len(tolerance.why) > 20


@pytest.mark.parametrize("why", ["", "   "])
def test_a_tolerance_without_a_reason_does_not_construct(why: str) -> None:
    with pytest.raises(ToleranceError, match="needs `why`"):
        Tolerance(k=2, floor=1e-6, null_factor=3, why=why)


@pytest.mark.parametrize("bad", [{"k": 0.5}, {"floor": -1.0}, {"null_factor": 0.1}])
def test_a_tolerance_out_of_range_does_not_construct(bad: dict[str, float]) -> None:
    with pytest.raises(ToleranceError, match="expected k >= 1"):
        Tolerance(**{"k": 2, "floor": 1e-6, "null_factor": 3, "why": "test", **bad})


def test_half_precision_is_held_to_three_and_float32_to_two_times() -> None:
    for dtype, k in (("float32", 2), ("float64", 2), ("float16", 3), ("bfloat16", 3)):
        assert TABLE[Tier.KERNEL, dtype, OutputKind.EMBEDDING, "1-32"].k == k


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(1, 3), st.floats(0, 0.1))
def test_the_bound_of_few_samples_is_k_times_the_largest(
    errors: list[float], k: float, floor: float
) -> None:
    collected = OracleErrors()
    for error in errors:
        collected.add(KEY, error)
    assert collected.bound(KEY, k, floor) == max(floor, k * max(errors))


def test_of_many_samples_one_in_a_thousand_is_let_go() -> None:
    collected = OracleErrors()
    for error in (*[1e-6] * 4999, 1.0):
        collected.add(KEY, error)
    assert collected.bound(KEY, 2.0, 0.0) == 2e-6


def test_a_later_error_counts() -> None:
    collected = OracleErrors()
    collected.add(KEY, 0.25)
    assert collected.bound(KEY, 2.0, 0.0) == 0.5
    collected.add(KEY._replace(bucket="1-32"), 1.0)
    assert collected.bound(KEY, 2.0, 0.0) == 2.0


def test_a_bucket_without_samples_has_the_floor() -> None:
    assert OracleErrors().bound(KEY, 2.0, 1e-6) == 1e-6


def test_errors_of_shorter_prompts_count_and_of_others_do_not() -> None:
    collected = OracleErrors()
    collected.add(KEY._replace(bucket="1-32"), 0.25)
    for other in (
        {"bucket": "513+"},
        {"checkpoint": "other"},
        {"dtype": "float16"},
        {"kind": OutputKind.LOGIT},
    ):
        collected.add(KEY._replace(**other), 9.0)
    assert collected.bound(KEY, 2.0, 0.0) == 0.5


@pytest.mark.parametrize("error", [float("nan"), float("inf")])
def test_a_broken_baseline_does_not_widen_the_bound(error: float) -> None:
    collected = OracleErrors()
    collected.add(KEY, error)
    assert collected.bound(KEY, 2.0, 1e-6) == 1e-6


def test_the_bound_is_not_the_cases_own_error() -> None:
    world = World.of("embed", normalize=False)
    wrong = rounded(world.truth, size=1e-4, seed=5)
    # A lucky baseline does not condemn an honest variant ...
    lucky = run(BASE, rounded(world.truth, size=1e-12))
    honest_variant = run(CHUNK, rounded(world.truth, seed=6))
    assert world.judge(honest_variant, lucky).outcome is Outcome.PASS
    # ... and an unlucky one does not excuse a wrong variant.
    unlucky = run(BASE, rounded(world.truth, size=5e-5, seed=7))
    assert world.judge(run(CHUNK, wrong), unlucky).outcome is Outcome.FAIL


def test_power_asks_for_a_hundred_reordered_tolerances() -> None:
    bounds = Bounds(calibration=Calibration({}))
    assert bounds.power(KEY) == POWER_FACTOR * bounds.bound(Tier.REORDERED, KEY).oracle
    assert POWER_FACTOR == 100


@pytest.mark.parametrize(
    ("null", "error", "outcome", "warned"),
    [
        (1.0, 1e-4, Outcome.FAIL, ""),
        (1e-9, 1e-6, Outcome.PASS, "more than known-good runs"),
        (1e-9, 1e-4, Outcome.FAIL, ""),
        (1.0, 1e-6, Outcome.PASS, ""),
    ],
)
def test_reordered_fails_when_both_bounds_are_exceeded_and_warns_at_one(
    null: float, error: float, outcome: Outcome, warned: str
) -> None:
    world = World.of("embed", normalize=False)
    nulls = {
        world.subject.key(i): Null(quantile=null, count=2000, seed=0, command=COMMAND)
        for i in range(5)
    }
    bounds = Bounds(errors=world.bounds.errors, calibration=Calibration(nulls))
    variant = run(CHUNK, rounded(world.truth, size=error, seed=6))
    record = world.judge(variant, bounds=bounds)
    assert record.outcome is outcome, record
    assert any(warned in w for w in record.warnings) if warned else not record.warnings
    allowed = next(m for m in record.measurements if m.metric == "relative_l2")
    oracle = next(m for m in record.measurements if m.metric == "oracle_error")
    assert allowed.bound == min(3 * null, oracle.bound or 0.0)
    assert "of 2000 known-good pairs" in allowed.why
    # The kernel tier asks float64 only.
    compiled = world.judge(run(Cell.parse("compile=compiled"), variant.outputs), bounds=bounds)
    assert compiled.outcome is (Outcome.FAIL if error > 1e-5 else Outcome.PASS)


def test_beyond_float64_but_not_beyond_the_null_is_a_warning() -> None:
    world = World.of("embed", normalize=False)
    wide = {
        world.subject.key(i): Null(quantile=1.0, count=2000, seed=0, command=COMMAND)
        for i in range(5)
    }
    bounds = Bounds(errors=world.bounds.errors, calibration=Calibration(wide))
    limit = bounds.bound(Tier.REORDERED, world.subject.key(0)).oracle

    def off(size: float) -> tuple[Output, ...]:
        return tuple(Output.of((o.float64 * (1 + size)).astype("float32")) for o in world.truth)

    # A and B err to the same side: B just beyond the bound, three fifths of it from A.
    a, b = run(BASE, off(0.45 * limit)), run(CHUNK, off(1.1 * limit))
    record = world.judge(b, a, bounds=bounds)
    assert record.outcome is Outcome.PASS, record
    assert any("beyond the oracle bound" in w for w in record.warnings)
    assert world.judge(b, a).outcome is Outcome.FAIL


def test_settings_pairs_are_exact_and_named_in_the_record() -> None:
    world = World.of("embed", normalize=False)
    other = run(
        BASE,
        world.base,
        "lagging",
        settings={"stream_policy": "lag(copy@last)", "executor": "inline", "inputs": "fenced"},
        witness=honest(BASE, stream_policy="lag(copy@last)"),
    )
    record = world.judge(other, None, Comparison.SETTING, settings=["stream_policy"])
    assert record.outcome is Outcome.PASS, record
    assert record.tier is Tier.EXACT
    assert measured(record)["max_ulp"] == 0
    assert record.settings["stream_policy"] == "lag(copy@last)"

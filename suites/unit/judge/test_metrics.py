"""Metrics in float64: what cosine cannot see, what float32 cannot resolve, what a ULP is.

Passes wrongly if a metric had the right formula and lost the digits that count. Ruled out by
suites/meta/test_suites_can_fail.py: `cosine-by-subtraction`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.judge import metrics
from harness.judge.output import BITS, Output, OutputKind, kind_of

EMBEDDING, TOKENS, LOGIT = OutputKind.EMBEDDING, OutputKind.TOKEN_EMBEDDING, OutputKind.LOGIT
WIDTHS = {"float16": 16, "float32": 32, "float64": 64}


def of(*values: float, dtype: str = "float32") -> Output:
    return Output.of(np.array(values, dtype=dtype))


def bfloat16(*values: float) -> Output:
    bits = np.array(values, np.float32).view(np.uint32) >> np.uint32(16)
    return Output.of(bits.astype(np.uint16), dtype="bfloat16")


@settings(max_examples=40)
@given(st.floats(-8, 8), st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=8))
def test_relative_l2_is_the_change_of_scale(change: float, values: list[float]) -> None:
    reference = np.array(values, np.float64)
    if np.linalg.norm(reference) < 1e-3:
        reference = reference + 1.0
    found = metrics.relative_l2(reference * (1 + change), reference)
    assert math.isclose(float(found), abs(change), rel_tol=1e-9, abs_tol=1e-12)


def test_relative_l2_of_zero_references() -> None:
    zero, one = np.zeros(3), np.ones(3)
    assert metrics.relative_l2(zero, zero) == 0
    assert metrics.relative_l2(one, zero) == math.inf


@pytest.mark.parametrize("angle", [1e-3, 1e-8, 1e-12])
def test_cosine_distance_is_resolved_far_below_float32(angle: float) -> None:
    a = np.array([1.0, 0.0])
    b = np.array([math.cos(angle), math.sin(angle)]) * 7  # another length, the same direction
    assert math.isclose(float(metrics.one_minus_cosine(b, a)), angle**2 / 2, rel_tol=1e-3)


def test_norm_ratio_sees_the_scale_that_cosine_does_not() -> None:
    a = np.array([3.0, 4.0])
    assert metrics.one_minus_cosine(2 * a, a) < 1e-30
    assert metrics.norm_ratio(2 * a, a) == 1.0


def test_the_worst_row_is_the_error() -> None:
    reference = np.ones((500, 4))
    value = reference.copy()
    value[123] *= 1.5
    assert math.isclose(metrics.error(TOKENS, Output.of(value), Output.of(reference)), 0.5)


def test_scores_are_held_absolutely_and_large_logits_and_vectors_relatively() -> None:
    a, b = of(100.0, dtype="float64"), of(101.0, dtype="float64")
    assert math.isclose(metrics.error(LOGIT, b, a), 0.01)
    assert metrics.error(LOGIT, of(0.25), of(0.125)) == 0.125
    assert metrics.error(LOGIT, of(0.25), of(0.125), scale=of(-2.0)) == 0.0625
    assert math.isclose(metrics.error(EMBEDDING, b, a), 0.01)
    assert math.isclose(metrics.error(EMBEDDING, b, a, scale=of(200.0)), 0.005)


def test_nan_is_an_infinite_error() -> None:
    assert metrics.error(EMBEDDING, of(math.nan), of(1.0)) == math.inf
    assert metrics.error(LOGIT, of(math.nan), of(1.0)) == math.inf


def test_non_finite_elements_are_counted() -> None:
    assert metrics.num_non_finite(of(1, math.nan, math.inf, -math.inf)) == 3
    assert metrics.num_non_finite(bfloat16(1, math.nan, 2)) == 1


@settings(max_examples=40)
@given(st.data(), st.sampled_from(sorted(WIDTHS)), st.integers(0, 5))
def test_ulp_distance_counts_steps(data: st.DataObject, dtype: str, steps: int) -> None:
    limit = 1e4
    drawn = data.draw(st.floats(-limit, limit, width=WIDTHS[dtype]))  # type: ignore[arg-type]
    value = np.array([drawn], dtype=dtype)
    moved = value
    for _ in range(steps):
        moved = np.nextafter(moved, np.array(np.inf, dtype=dtype))
    a, b = Output.of(value), Output.of(moved)
    assert metrics.ulp_distance(a, b).tolist() == [steps]
    assert metrics.ulp_distance(b, a).tolist() == [steps]


def test_ulp_distance_across_zero_and_at_the_extremes() -> None:
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    assert metrics.ulp_distance(of(-tiny), of(tiny)).tolist() == [2]
    assert metrics.ulp_distance(of(-0.0), of(0.0)).tolist() == [0]
    largest = np.finfo(np.float64).max
    far = metrics.ulp_distance(of(-largest, dtype="float64"), of(largest, dtype="float64"))
    assert far.tolist() == [2 * 0x7FEFFFFFFFFFFFFF]


def test_bfloat16_is_read_from_its_bits() -> None:
    assert bfloat16(1.0, -2.5).float64.tolist() == [1.0, -2.5]
    assert metrics.ulp_distance(bfloat16(1.0), bfloat16(1.0078125)).tolist() == [1]


def test_the_histogram_counts_differing_elements_by_distance() -> None:
    a = Output.of(np.zeros(6, np.float32) + 1)
    bits = a.bits + np.array([0, 1, 2, 3, 4, 100], np.uint32)
    found = metrics.bit_difference(a, Output.of(bits.view(np.float32)))
    assert found.differing == 5
    assert found.max_ulp == 100
    assert found.histogram == {"1": 1, "2-3": 2, "4-7": 1, "64-127": 1}


def test_a_sign_of_zero_differs_at_no_distance() -> None:
    found = metrics.bit_difference(of(0.0, 1.0), of(-0.0, 1.0))
    assert (found.differing, found.max_ulp, found.histogram) == (1, 0, {"0": 1})


@settings(max_examples=40)
@given(st.lists(st.floats(width=32), min_size=1, max_size=6))
def test_equal_bits_do_not_differ_nan_included(values: list[float]) -> None:
    assert metrics.bit_difference(of(*values), of(*values)).differing == 0


def test_similarity_drift_is_what_a_user_of_embeddings_sees() -> None:
    a = [of(1, 0), of(1, 0)]
    b = [of(1, 0), of(0, 5)]
    assert math.isclose(metrics.similarity_drift(a, b), 1.0)
    # A rotation of everything moves no similarity.
    assert metrics.similarity_drift([of(1, 0), of(0, 1)], [of(0, 1), of(-1, 0)]) < 1e-15


def test_ranks_agree_up_to_near_ties() -> None:
    a = [of(1.0), of(1.1), of(3.0)]
    flipped = [of(1.1), of(1.0), of(3.0)]
    assert metrics.rank_inversions(a, flipped, near=0.01) == 1
    assert metrics.rank_inversions(a, flipped, near=0.06) == 0
    assert metrics.rank_inversions(a, [of(1.0), of(1.1), of(0.0)], near=0.01) == 2
    assert metrics.rank_inversions(a, [of(2.0), of(2.0), of(2.0)], near=0.01) == 3


@pytest.mark.parametrize(
    ("task", "activation", "kind"),
    [
        ("embed", None, "embedding"),
        ("token_embed", None, "token_embedding"),
        ("score", True, "score"),
        ("score", None, "score"),
        ("classify", False, "logit"),
        ("token_classify", False, "token_logit"),
        ("token_classify", True, "token_score"),
    ],
)
def test_kind_of_a_task(task: str, activation: bool | None, kind: str) -> None:  # noqa: FBT001
    assert kind_of(task, activation=activation) == kind


def test_an_unknown_task_or_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="valid: embed"):
        kind_of("translate")
    with pytest.raises(ValueError, match="valid: float64"):
        Output.of(np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="held as numpy uint16"):
        Output(data=np.zeros(1, np.float32), dtype="bfloat16")
    assert set(BITS) == {"float64", "float32", "float16", "bfloat16"}


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_the_error_of_a_prefix_is_that_of_its_matrix(count: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    truth = draw.standard_normal((count, 5))
    value, reference = (Output.of(truth + 1e-3 * draw.standard_normal(truth.shape)) for _ in "ab")
    scale = Output.of(truth)
    found = metrics.prefix_errors(value, reference, scale)
    assert found.shape == (count,)
    for rows in range(1, count + 1):
        cut = (Output.of(o.data[:rows]) for o in (value, reference, scale))
        expected = float(metrics.row_errors(OutputKind.TOKEN_MATRIX, *cut)[0])
        assert float(found[rows - 1]) == pytest.approx(expected, rel=1e-12)

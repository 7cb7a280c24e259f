"""Buckets: every step fits one, the one it is given is the least, and little of it is padding.

Passes wrongly if any bucket that is large enough was accepted. Ruled out by
suites/meta/test_suites_can_fail.py: `every-step-gets-the-largest-bucket`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ConfigurationError
from engine.execution.buckets import bucket_of, default_buckets, reachable


@given(most=st.integers(1, 100_000), share=st.floats(0.0, 1.0))
def test_a_step_gets_the_least_bucket_that_holds_it(most: int, share: float) -> None:
    buckets = default_buckets(most)
    rows = max(1, round(share * most))
    bucket = bucket_of(buckets, rows)
    assert list(buckets) == sorted(set(buckets))
    assert bucket >= rows
    assert all(other < rows for other in buckets if other < bucket)
    assert rows <= 32 or (bucket - rows) / bucket < 1 / 5


@given(most=st.integers(1, 100_000))
def test_no_bucket_is_recorded_for_steps_that_cannot_come(most: int) -> None:
    buckets = default_buckets(most)
    assert buckets[-1] >= most
    assert all(bucket < most for bucket in buckets[:-1])
    assert len(buckets) <= 50  # a recording each, at start-up


def test_the_largest_bucket_must_hold_the_largest_step() -> None:
    assert reachable((8, 64, 256, 1024), 200) == (8, 64, 256)
    with pytest.raises(
        ConfigurationError, match=r"may have 257 rows .*Add a bucket of at least 257"
    ):
        reachable((8, 256), 257)

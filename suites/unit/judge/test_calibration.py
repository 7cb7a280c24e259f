"""Measured bounds live in one text file that changes by a diff, and only for known-good runs.

Passes wrongly if an approval refused nothing. Ruled out by suites/meta/test_suites_can_fail.py:
`every-null-is-approved`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge import Bounds, BucketKey, Calibration, Null, OutputKind, ToleranceError
from harness.judge.approval import approve
from harness.judge.calibration import (
    CALIBRATION,
    CHUNKED,
    COMPANY,
    FLOAT64,
    NULLS,
    Entry,
    parse,
    read,
    text,
)
from harness.judge.tolerance import BUCKET_NAMES, EPSILON
from harness.record import Tier

KEY = BucketKey("sample", "float32", OutputKind.EMBEDDING, "33-128")
COMMAND = "measure nulls of sample, seed 0"


def entry(quantile: float, pairs: str = CHUNKED, key: BucketKey = KEY, count: int = 2000) -> Entry:
    null = Null(quantile=quantile, count=count, seed=3, command=COMMAND)
    return Entry(key=key, pairs=pairs, null=null)


entries = st.lists(
    st.builds(
        entry,
        st.floats(0, 1).map(lambda q: float(f"{q:.4g}")),
        st.sampled_from((FLOAT64, *NULLS)),
        st.builds(
            BucketKey,
            st.sampled_from(("one", "two")),
            st.sampled_from(list(EPSILON)),
            st.sampled_from(OutputKind),
            st.sampled_from(BUCKET_NAMES),
        ),
        st.integers(1000, 9999),
    ),
    unique_by=lambda e: e.place,
)


def test_a_null_of_few_pairs_or_no_command_does_not_construct() -> None:
    good = entry(1e-6).null
    for bad in ({"count": 999}, {"command": " "}, {"quantile": float("nan")}):
        with pytest.raises(ToleranceError, match="a null needs"):
            dataclasses.replace(good, **bad)


def test_the_shipped_calibration_is_in_the_form_that_approve_writes() -> None:
    content = CALIBRATION.read_text(encoding="utf-8")
    assert text(parse(content, "it")) == content


def test_no_shipped_null_exceeds_its_oracle_bound() -> None:
    shipped = read(CALIBRATION)
    assert not approve((), shipped).refused
    bounds = Bounds(calibration=Calibration.of(shipped))
    for found in shipped:
        bound = bounds.bound(Tier.REORDERED, found.key)
        assert bound.null is None or bound.null <= bound.oracle


@given(entries)
def test_a_calibration_reads_back_and_does_not_depend_on_the_order(found: list[Entry]) -> None:
    content = text(found)
    assert content == text(reversed(found))
    assert sorted(parse(content, "it"), key=lambda e: e.place) == sorted(
        found, key=lambda e: e.place
    )
    assert content.count("\n") >= len(found) + 4, "one entry a line"


def test_the_widest_of_two_nulls_is_the_buckets() -> None:
    calibration = Calibration.of([entry(2e-6, CHUNKED), entry(1e-6, COMPANY), entry(9e-6, FLOAT64)])
    null, error = calibration.null(KEY), calibration.baseline_error(KEY)
    assert null is not None
    assert error is not None
    assert (null.quantile, error.quantile) == (2e-6, 9e-6)
    assert calibration.null(KEY._replace(bucket="1-32")) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"version": 2, "baseline_errors": [], "nulls": [{"kind": "smell"}]}',
        '{"version": 2, "nul": []}',
    ],
)
def test_a_broken_calibration_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content)
    with pytest.raises(ToleranceError, match=r"calibration\.json is not a calibration"):
        Calibration.load(path)


def test_another_version_and_an_unknown_name_are_refused() -> None:
    with pytest.raises(ToleranceError, match="version 1, this reads 2"):
        parse('{"version": 1}', "old.json")
    with pytest.raises(ToleranceError, match="pairs='luck' is unknown; valid: float64, chunked"):
        entry(1e-6, "luck")
    with pytest.raises(ToleranceError, match="bucket='9' is unknown; valid: 1-32"):
        entry(1e-6, key=KEY._replace(bucket="9"))


def test_a_null_sharpens_a_bound_and_never_widens_it() -> None:
    floor = Bounds(calibration=Calibration({})).bound(Tier.REORDERED, KEY).oracle
    for quantile in (floor / 30, floor, 1.0):
        bound = Bounds(calibration=Calibration.of([entry(quantile)])).bound(Tier.REORDERED, KEY)
        assert bound.oracle == floor
        assert bound.null == min(3 * quantile, floor)
        assert "of 2000 known-good pairs" in bound.null_why
        assert "`measure nulls of sample, seed 0`" in bound.null_why
    assert Bounds(calibration=Calibration.of([entry(1.0)])).bound(Tier.KERNEL, KEY).null is None


def test_an_approval_replaces_what_stands_in_the_same_place_and_shows_one_line() -> None:
    old, other = entry(1e-6), entry(2e-7, COMPANY)
    approval = approve([old, other], [entry(1.5e-6)])
    assert not approval.refused
    assert approval.after == (entry(1.5e-6), other)
    changed = [x for x in approval.diff("c.json").splitlines() if x[0] in "+-" and x[1] == "{"]
    assert changed == [f"-{old.line()},", f"+{entry(1.5e-6).line()},"]
    assert approve([old], [old]).diff("c.json") == ""


def test_what_exceeds_the_oracle_bound_is_refused() -> None:
    floor = Bounds(calibration=Calibration({})).bound(Tier.REORDERED, KEY).oracle
    approval = approve([], [entry(1.01 * floor), entry(floor / 2, COMPANY)])
    assert len(approval.refused) == 1
    assert "sample, float32, embedding, 33-128 tokens, chunked: measured" in approval.refused[0]
    assert "beyond" in approval.refused[0]
    # A baseline error proposed beside it widens the bound it is held to ...
    assert not approve([], [entry(1.01 * floor), entry(floor, FLOAT64)]).refused
    # ... and is itself held to the furthest that a baseline may be off.
    assert "may be from float64" in approve([], [entry(9e-5, FLOAT64)]).refused[0]

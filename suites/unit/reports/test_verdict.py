"""The verdict and the statistics it rests on.

Passes wrongly if the records never disagreed with the end record, so that nobody compares the two.
Ruled out by suites/meta/test_suites_can_fail.py: `lost-records-are-no-problem`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from harness.record import EndRecord, Outcome, PairRecord
from reports.load import Run, load_run
from reports.view.bounds import interval, upper
from reports.view.verdict import Safety, verdict
from suites.unit.reports.fixtures import (
    clean_run,
    empty_run,
    failing_run,
    interrupted_run,
)
from suites.unit.reports.parts import RecordedRun, end


def loaded(recorded: RecordedRun, folder: Path) -> Run:
    return load_run(recorded.write(folder))


def with_one(recorded: RecordedRun, outcome: Outcome) -> RecordedRun:
    """The run with its first PASS turned into `outcome`, and its end record told so."""
    records = [r for r in recorded.records if not isinstance(r, EndRecord)]
    at = next(
        i for i, r in enumerate(records) if isinstance(r, PairRecord) and r.outcome is Outcome.PASS
    )
    pair = records[at]
    assert isinstance(pair, PairRecord)
    records[at] = replace(pair, outcome=outcome, reason="changed by a test")
    return replace(recorded, records=(*records, end(records)))


@pytest.mark.parametrize("trials", [1, 3, 100, 10_000])
def test_no_failure_gives_the_closed_form_near_the_rule_of_three(trials: int) -> None:
    bound = upper(0, trials)
    assert math.isclose((1 - bound) ** trials, 0.05, rel_tol=1e-9)
    assert bound <= 3 / trials
    assert trials < 100 or bound > 2.9 / trials


def test_bounds_with_failures_invert_the_binomial_tail() -> None:
    # P(X <= 2 | n = 10, p) = 0.05 and P(X >= 2 | n = 10, p) = 0.025, summed by hand.
    bound = upper(2, 10)
    tail = sum(math.comb(10, i) * bound**i * (1 - bound) ** (10 - i) for i in range(3))
    assert math.isclose(tail, 0.05, rel_tol=1e-6)
    low, high = interval(2, 10)
    above = 1 - sum(math.comb(10, i) * low**i * (1 - low) ** (10 - i) for i in range(2))
    below = sum(math.comb(10, i) * high**i * (1 - high) ** (10 - i) for i in range(3))
    assert math.isclose(above, 0.025, rel_tol=1e-6)
    assert math.isclose(below, 0.025, rel_tol=1e-6)


def test_ends_of_the_range() -> None:
    assert interval(0, 5)[0] == 0.0
    assert interval(5, 5)[1] == 1.0
    assert upper(0, 0) == 1.0


def test_a_clean_run_is_safe_and_counts_cases_not_pairs(tmp_path: Path) -> None:
    shown = verdict(loaded(clean_run(num_cases=3), tmp_path))
    assert shown.safety is Safety.SAFE
    assert shown.exit_code == 0
    assert shown.num_cases == 12 < shown.num_pairs
    assert "No failure in 12 judged cases" in shown.statistics
    assert not shown.problems


def test_a_failing_run_is_unsafe_with_an_interval(tmp_path: Path) -> None:
    shown = verdict(loaded(failing_run(num_cases=3), tmp_path))
    assert shown.safety is Safety.UNSAFE
    assert shown.exit_code == 1
    # Two of the three lengths reach three chunks, on each of the two decoders.
    assert shown.statistics.startswith("4 of 9 judged cases fail: 44\u00a0%")


@pytest.mark.parametrize(
    ("outcome", "code", "words"),
    [
        (Outcome.FAIL, 1, "depend on how it is run"),
        (Outcome.ERROR, 2, "could not be made"),
        (Outcome.VACUOUS, 3, "prove nothing"),
    ],
)
def test_one_bad_pair_decides(tmp_path: Path, outcome: Outcome, code: int, words: str) -> None:
    shown = verdict(loaded(with_one(clean_run(num_cases=2), outcome), tmp_path))
    assert shown.exit_code == code
    assert words in shown.headline
    assert shown.safety is (Safety.UNSAFE if code == 1 else Safety.UNPROVEN)


def test_an_empty_run_proves_nothing(tmp_path: Path) -> None:
    shown = verdict(loaded(empty_run(), tmp_path))
    assert shown.safety is Safety.UNPROVEN
    assert shown.exit_code == 3
    assert "nothing was proved" in shown.headline


def test_an_interrupted_run_is_never_safe(tmp_path: Path) -> None:
    shown = verdict(loaded(interrupted_run(), tmp_path))
    assert shown.safety is Safety.UNPROVEN
    assert shown.exit_code is None
    assert shown.problems[0].startswith("This run was interrupted: no end record.")


def test_an_interrupted_run_that_failed_stays_unsafe(tmp_path: Path) -> None:
    recorded = failing_run(num_cases=2)
    shown = verdict(loaded(replace(recorded, records=recorded.records[:-1]), tmp_path))
    assert shown.safety is Safety.UNSAFE
    assert shown.interrupted


def test_records_that_do_not_add_up_are_not_safe(tmp_path: Path) -> None:
    recorded = clean_run(num_cases=2)
    lost = next(r for r in recorded.records if isinstance(r, PairRecord))
    kept = tuple(r for r in recorded.records if r is not lost)
    shown = verdict(loaded(replace(recorded, records=kept), tmp_path))
    assert shown.safety is Safety.UNPROVEN
    assert "do not add up" in shown.problems[0]


def test_an_end_that_tells_of_misuse_is_not_safe(tmp_path: Path) -> None:
    recorded = clean_run(num_cases=2)
    last = recorded.records[-1]
    assert isinstance(last, EndRecord)
    told = replace(recorded, records=(*recorded.records[:-1], replace(last, exit_code=2)))
    shown = verdict(loaded(told, tmp_path))
    assert shown.safety is Safety.UNPROVEN
    assert shown.exit_code == 2

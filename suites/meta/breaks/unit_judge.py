"""Breaks of `suites/unit/judge`."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _loads_torch(right: Any) -> Any:
    """What stands there; the module that holds it has loaded torch by then."""
    importlib.import_module("torch")
    return right


def _cosine_by_subtraction(value: Any, reference: Any) -> Any:
    """1 - cosine as it is written down, which loses every digit of a small angle."""
    lengths = (value @ value) ** 0.5 * (reference @ reference) ** 0.5
    return 1.0 - (value @ reference) / lengths


BREAKS: Final = (
    Break(
        name="answers-to-another-question-are-not-held-to-it",
        suite="suites/unit/judge/test_related.py",
        red="test_the_first_answer_given_again_is_told_from_a_merely_wrong_one",
        at="harness.judge.related:_another",
        instead=instead.result(
            lambda verdict: replace(verdict, outcome=type(verdict.outcome).PASS)
        ),
    ),
    Break(
        name="every-null-is-approved",
        suite="suites/unit/judge/test_calibration.py",
        red="test_what_exceeds_the_oracle_bound_is_refused",
        at="harness.judge.approval:approve",
        instead=instead.result(lambda approval: replace(approval, refused=())),
    ),
    Break(
        name="errors-have-no-side",
        suite="suites/unit/judge/test_drift.py",
        red="test_a_shift_beyond_the_budget_fails",
        at="harness.judge.drift:_signed",
        instead=instead.result(lambda found: ((name, prompt, 0.0) for name, prompt, _ in found)),
    ),
    Break(
        name="cosine-by-subtraction",
        suite="suites/unit/judge/test_metrics.py",
        red="test_cosine_distance_is_resolved_far_below_float32",
        at="harness.judge.metrics:one_minus_cosine",
        instead=instead.value(_cosine_by_subtraction),
    ),
    Break(
        name="every-movement-is-plain",
        suite="suites/unit/judge/test_power.py",
        red="test_an_output_has_power_from_a_hundred_tolerances_on",
        at="harness.judge.power:_moved",
        instead=instead.returns(True),  # noqa: FBT003
    ),
    Break(
        name="bounds-are-as-wide-as-the-answer",
        suite="suites/unit/judge/test_tolerance.py",
        red="test_the_bound_is_not_the_cases_own_error",
        at="harness.judge.bounds:OracleErrors.bound",
        instead=instead.returns(1.0),
    ),
    Break(
        name="the-judge-loads-torch",
        suite="suites/unit/judge/test_without_torch.py",
        red="test_judging_loads_neither_torch_nor_transformers",
        at="harness.judge.metrics:error",
        instead=_loads_torch,
    ),
)

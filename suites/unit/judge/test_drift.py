"""Errors that are each allowed and all to one side are a failure of the run.

Passes wrongly if errors to one side were averaged away. Ruled out by
suites/meta/test_suites_can_fail.py: `errors-have-no-side`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from harness.judge import Output
from harness.judge.drift import BUDGET, MIN_SAMPLES, DriftBudget
from harness.record import DriftRecord, Outcome, Tier
from suites.unit.judge.pairs import World

CASES = 12


def drift(
    task: str, shift: float, noise: float = 0.3, tier: Tier = Tier.KERNEL, cases: int = CASES
) -> dict[str, DriftRecord]:
    """Drift of a run whose answers are `noise` off in any direction and `shift` to one side, both
    as shares of the noise that is allowed to one answer."""
    world = World.of(task, normalize=False) if "embed" in task else World.of(task, activation=False)
    budget = DriftBudget(world.bounds)
    draw = np.random.default_rng(7)
    for case in range(cases):
        subject = dataclasses.replace(world.subject, case_id=str(case))
        b = []
        for index, output in enumerate(world.base):
            rule = world.bounds.rules.tolerance(tier, subject.key(index))
            unit = world.bounds.bound(Tier.KERNEL, subject.key(index)).oracle / max(rule.k, 2)
            value = output.float64
            off = unit * (shift + noise * draw.standard_normal())
            if "embed" in task:
                b.append(Output.of(value * (1 + off)))
            else:
                b.append(Output.of(value + off * np.maximum(1, np.abs(value))))
        budget.add(subject, "compile", tier, world.base, b)
    return {record.metric: record for record in budget.records()}


@pytest.mark.parametrize(("task", "metric"), [("embed", "norm"), ("classify", "logit")])
@pytest.mark.parametrize(
    ("shift", "outcome"), [(0.0, "PASS"), (0.2, "PASS"), (0.9, "FAIL"), (-0.9, "FAIL")]
)
def test_a_shift_beyond_the_budget_fails(
    task: str, metric: str, shift: float, outcome: str
) -> None:
    record = drift(task, shift)[metric]
    assert record.outcome == outcome, record
    assert record.samples == CASES * 5
    assert record.low < record.mean < record.high
    assert record.mean == pytest.approx(shift, abs=0.15)
    assert record.budget == BUDGET
    assert ("drifts along compile" in record.reason) is (outcome == "FAIL")


def test_an_interval_that_reaches_the_budget_is_no_failure() -> None:
    assert drift("embed", 0.6, noise=3.0)["norm"].outcome is Outcome.PASS


def test_few_prompts_and_the_exact_tier_say_nothing() -> None:
    assert not drift("embed", 9.0, cases=MIN_SAMPLES // 5 - 1)
    assert not drift("embed", 9.0, tier=Tier.EXACT)


def test_cells_that_repeat_a_prompt_are_one_sample() -> None:
    world = World.of("embed", normalize=False)
    budget = DriftBudget(world.bounds)
    for _ in range(20):
        budget.add(world.subject, "compile", Tier.KERNEL, world.base, world.base)
    assert not list(budget.records())


def test_similarities_that_drift_fail() -> None:
    world = World.of("embed", normalize=False)
    budget = DriftBudget(world.bounds)
    common = np.ones(24) / np.sqrt(24)
    for case in range(CASES):
        subject = dataclasses.replace(world.subject, case_id=str(case))
        b = [Output.of(o.float64 + 1e-5 * np.linalg.norm(o.float64) * common) for o in world.base]
        budget.add(subject, "chunk", Tier.REORDERED, world.base, b)
    record = {r.metric: r for r in budget.records()}["similarity"]
    assert record.samples == CASES * 4
    assert record.high > 0

"""Breaks of the files that lie in `suites/meta` itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _every_failing_set(minimal_sets: Callable[..., Any]) -> Callable[..., Any]:
    """`minimal_sets`, which returns the failing sets that hold another as well."""
    switches = minimal_sets.__globals__["switches"]
    return lambda bad: tuple(
        sorted({switches(cell) for cell in bad}, key=lambda s: (len(s), sorted(s)))
    )


BREAKS: Final = (
    Break(
        name="nan-is-an-answer",
        suite="suites/meta/test_judge_red.py",
        red="test_not_finite",
        at="harness.judge.checks:finite",
        instead=instead.returns(None),
    ),
    Break(
        name="silence-attests",
        suite="suites/meta/test_judge_evidence.py",
        red="test_a_pair_that_cannot_attest_its_tier_is_an_error",
        at="harness.judge.attest:unattested",
        instead=instead.returns(None),
    ),
    Break(
        name="switches-vouch-for-themselves",
        suite="suites/meta/test_nothing_vacuous.py",
        red="test_a_liar_about_an_axis_never_passes_on_it",
        at="harness.axes.base:Axis.witnessed",
        instead=instead.returns(None),
    ),
    Break(
        name="supersets-are-minimal-too",
        suite="suites/meta/test_three_bugs.py",
        red="test_s3_needs_two_stages_and_several_steps",
        at="harness.attribution.sets:minimal_sets",
        instead=_every_failing_set,
    ),
)

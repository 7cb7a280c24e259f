"""Breaks of `suites/unit/search`."""

from __future__ import annotations

from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _takes_all(reducer: Any, candidate: Any) -> bool:
    """`Reducer.consider`, which takes whatever it is offered."""
    reducer.current = candidate
    reducer.accepted.append(candidate)
    return True


BREAKS: Final = (
    Break(
        name="larger-cases-are-taken",
        suite="suites/unit/search/test_search.py",
        red="test_only_smaller_cases_that_keep_the_failure_are_taken",
        at="harness.search.reducer:Reducer.consider",
        instead=instead.value(_takes_all),
    ),
    Break(
        name="the-last-step-is-not-tried",
        suite="suites/unit/search/test_search.py",
        red="test_no_single_step_less_fails",
        at="harness.search.passes:one_step_less",
        instead=instead.returns(None),
    ),
    Break(
        name="nothing-is-aimed-at",
        suite="suites/unit/search/test_targeted.py",
        red="test_the_climb_goes_where_undirected_cases_do_not",
        at="harness.search.targeted:target",
        instead=instead.returns(None),
    ),
)

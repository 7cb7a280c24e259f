"""Breaks of `suites/unit/attribution`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _every_set(minimal_sets: Callable[..., Any]) -> Callable[..., Any]:
    """`minimal_sets`, which leaves no set out for holding another one."""
    switches = minimal_sets.__globals__["switches"]

    def function(bad: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(sorted({switches(cell) for cell in bad}, key=lambda s: (len(s), sorted(s))))

    return function


BREAKS: Final = (
    Break(
        name="an-interleaving-is-invented",
        suite="suites/unit/attribution/test_race.py",
        red="test_no_interleaving_is_invented",
        at="harness.attribution.race:failing_interleaving",
        instead=instead.returns((0, 2)),
    ),
    Break(
        name="every-failing-set-is-minimal",
        suite="suites/unit/attribution/test_parts.py",
        red="test_minimal_sets_of_any_two_sets_are_those_sets",
        at="harness.attribution.sets:minimal_sets",
        instead=_every_set,
    ),
    Break(
        name="nothing-masks-a-failure",
        suite="suites/unit/attribution/test_find.py",
        red="test_conjunction_is_named_shrunk_masked_and_localised",
        at="harness.attribution.sets:masks",
        instead=instead.returns(frozenset()),
    ),
    Break(
        name="only-answers-are-compared",
        suite="suites/unit/attribution/test_localise.py",
        red="test_first_wrong_row",
        at="harness.localise:_first_hidden",
        instead=instead.returns(None),
    ),
)

"""Breaks of `suites/unit/strategies`."""

from __future__ import annotations

from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _every_class(boundaries_of: Any) -> Any:
    """`boundaries_of`, which recognises every class in every prompt."""
    classes = tuple(boundaries_of.__globals__["LENGTH_CLASSES"])
    return lambda *args, **kwargs: classes


BREAKS: Final = (
    Break(
        name="every-seed-is-the-first",
        suite="suites/unit/strategies/test_draw.py",
        red="test_seeds_differ_and_a_longer_draw_starts_with_the_shorter",
        at="harness.strategies.draw:draw_cases",
        instead=lambda right: lambda space, count, seed: right(space, count, 0),
    ),
    Break(
        name="every-length-is-of-every-class",
        suite="suites/unit/strategies/test_lengths.py",
        red="test_a_length_belongs_to_its_classes",
        at="harness.strategies.lengths:boundaries_of",
        instead=_every_class,
    ),
    Break(
        name="long-prompts-of-any-length",
        suite="suites/unit/strategies/test_switching.py",
        red="test_memory_is_short_steps_overlap_and_beginnings_are_shared",
        at="harness.strategies.switching:_at_a_boundary",
        instead=lambda right: lambda space, least, most: right(space, 1, most),
    ),
    Break(
        name="cases-are-not-aimed",
        suite="suites/unit/strategies/test_cases.py",
        red="test_a_case_hits_the_class_it_aims_at",
        at="harness.strategies.cases:cases",
        instead=lambda right: lambda space, focus=None, task=None: right(space, None, task),
    ),
    Break(
        name="reserved-ids-are-drawn",
        suite="suites/unit/strategies/test_cases.py",
        red="test_a_case_stays_inside_its_space",
        at="harness.strategies.cases:tokens_of",
        instead=instead.value(lambda space, length, seed: (0,) * length),
    ),
)

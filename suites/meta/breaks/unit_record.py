"""Breaks of `suites/unit/record`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="words-become-numbers",
        suite="suites/unit/record/test_record.py",
        red="test_words_that_look_like_numbers_stay_words",
        at="harness.record.decoding:_as_it_is",
        instead=lambda right: (
            lambda value: float(value) if value in ("nan", "inf", "-inf") else right(value)
        ),
    ),
)

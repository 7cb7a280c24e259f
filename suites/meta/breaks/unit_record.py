"""Breaks of `suites/unit/record`."""

from __future__ import annotations

from typing import Any, Final

from suites.meta.planting.defect import Break


def _number_perhaps(value: Any) -> Any:
    """What a reader does that does not ask what the field is for."""
    return float(value) if value in ("nan", "inf", "-inf") else value


BREAKS: Final = (
    Break(
        name="words-become-numbers",
        suite="suites/unit/record/test_record.py",
        red="test_words_that_look_like_numbers_stay_words",
        at="harness.record.decoding:_decoder",
        instead=lambda right: lambda kind: _number_perhaps if kind is str else right(kind),
    ),
)

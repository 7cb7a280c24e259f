"""Breaks of `suites/unit/oracle`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="the-oracle-answers-in-float32",
        suite="suites/unit/oracle/test_oracle.py",
        red="test_decoder_agrees_with_an_independent_float64",
        at="harness.oracle.oracle:Oracle.hidden",
        instead=instead.result(lambda states: states.float().double()),
    ),
    Break(
        name="all-questions-share-an-answer",
        suite="suites/unit/oracle/test_cache.py",
        red="test_each_question_has_its_own_answer",
        at="harness.oracle.cache:CachedOracle._ask",
        instead=lambda right: lambda oracle, question, *rest: right(oracle, "", *rest),
    ),
)

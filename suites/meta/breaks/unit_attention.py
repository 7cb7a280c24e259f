"""Breaks of `suites/unit/attention`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="rows-see-what-comes-after-them",
        suite="suites/unit/attention/test_op.py",
        red="test_rows_see_their_own_sequence_up_to_their_absolute_position",
        at="engine.attention.op:_pad",
        instead=instead.result(lambda padded: (*padded[:3], None)),
    ),
    Break(
        name="windows-are-not-looked-at",
        suite="suites/unit/attention/test_op.py",
        red="test_a_window_reaches_so_far_and_no_further",
        at="engine.attention.op:_pad",
        instead=lambda right: (
            lambda q, k, v, span, causal, window, invariant: right(
                q, k, v, span, causal, 0, invariant
            )
        ),
    ),
)

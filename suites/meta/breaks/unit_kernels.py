"""Breaks of `suites/unit/kernels`."""

from __future__ import annotations

from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="triton-is-never-refused",
        suite="suites/unit/kernels/test_availability.py",
        red="test_the_interpreter_has_no_bfloat16",
        at="engine.kernels.availability:require_triton",
        instead=instead.returns(None),
    ),
    Break(
        name="kernels-are-left-out-in-the-interpreter",
        suite="suites/unit/kernels/test_interpreter.py",
        red="test_kernels_agree_with_their_references_in_the_interpreter",
        at="suites.kernels.where:DEVICE",
        instead=instead.value(""),
    ),
)

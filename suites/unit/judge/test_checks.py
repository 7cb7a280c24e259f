"""What one side's outputs must be like, at the edge of each check, and the words that are said.

Passes wrongly if a check found fault with everything. Ruled out by
`test_what_is_right_is_not_told`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from harness.case import Case, Prompt
from harness.judge import Bounds, Calibration, OracleErrors, checks
from harness.judge.output import Output
from harness.judge.subject import Subject
from harness.judge.tolerance import NORM, POWER_FACTOR
from harness.record import Tier

BOUNDS = Bounds(errors=OracleErrors(), calibration=Calibration({}))


def subject(task: str = "embed", lengths: tuple[int, ...] = (3, 2), **more: Any) -> Subject:
    prompts = tuple(Prompt(tokens=tuple(range(9 * i, 9 * i + n))) for i, n in enumerate(lengths))
    case = Case(task=task, prompts=prompts, **more)
    return Subject.of(case, checkpoint="sample", dtype="float64", lengths=lengths)


def of(*values: Any, dtype: str = "float64") -> tuple[Output, ...]:
    return tuple(Output.of(np.array(v, dtype=dtype)) for v in values)


A, B = [0.6, 0.8], [1.0, 0.0]
ROWS = ([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [[0.8, 0.6], [-1.0, 0.0]])


def test_what_is_right_is_not_told() -> None:
    for asked, outputs in ((subject(), of(A, B)), (subject("token_embed"), of(*ROWS))):
        assert checks.structure(asked, outputs, outputs) is None
        assert checks.finite("A", outputs) is None
        assert checks.norm(asked, "A", outputs, outputs) is None
        assert checks.distinct(asked, "A", outputs, outputs, BOUNDS) is None
        assert checks.exchanged(asked, outputs, outputs) == ""


def test_structure_is_told_of_the_side_and_the_prompt() -> None:
    right, rows = of(A, B), of(*ROWS)
    tokens = subject("token_embed")
    for asked, a, b, told in (
        (subject(), right[:1], right, "side A returned 1 outputs for 2 prompts"),
        (subject(), right, right + right[:1], "side B returned 3 outputs for 2 prompts"),
        (
            subject(),
            right,
            (right[0], *of(B, dtype="float32")),
            "prompt 1: dtype float64 on side A",
        ),
        (subject(), right, of(A, [1.0]), "prompt 1: shape (2,) on side A, (1,) on side B"),
        (subject(), of(A, []), of(A, []), "prompt 1: the output has no element (shape (0,))"),
        (tokens, of(A, B), rows, "prompt 0: side A returned shape (2,) for 3 tokens"),
        (tokens, rows, of(ROWS[0], A), "prompt 1: side B returned shape (2,) for 2 tokens"),
        (tokens, rows, of(ROWS[0][:2], ROWS[1]), "prompt 0: side B returned shape (2, 2) for 3"),
    ):
        assert told in (checks.structure(asked, a, b) or "")


def test_elements_that_are_not_finite_are_counted() -> None:
    outputs = of(A, [math.nan, 1.0, math.inf, -math.inf])
    told = "prompt 1: 3 of 4 elements on side B are not finite"
    assert checks.finite("B", outputs) == told


def test_a_norm_is_asked_where_the_case_or_float64_says_so() -> None:
    """float64's own norm decides where the case is silent, and only within its rounding."""
    long, floor = of([0.6, 0.8], [1.5, 0.0]), NORM["float64"].floor
    told = "prompt 1: a normalised row on side B has norm off 1 by 0.5, allowed "
    assert (checks.norm(subject(normalize=True), "B", long, None) or "").startswith(told)
    assert checks.norm(subject(normalize=False), "B", long, of(A, B)) is None
    assert checks.norm(subject(), "B", long, None) is None
    assert (checks.norm(subject(), "B", long, of(A, B)) or "").startswith(told)
    for off, asked in ((0.5 * floor, True), (2 * floor, False)):
        truth = of(A, [1.0 + off, 0.0])
        assert (checks.norm(subject(), "B", long, truth) is not None) is asked, off
    for off, right in ((0.5 * floor, True), (2 * floor, False)):
        mine = of(A, [1.0 - off, 0.0])
        assert (checks.norm(subject(normalize=True), "B", mine, None) is None) is right, off


def test_one_row_of_zeros_or_off_one_of_many_is_told() -> None:
    tokens = subject("token_embed", normalize=True)
    zero = of(ROWS[0], [[0.8, 0.6], [0.0, 0.0]])
    assert checks.norm(tokens, "A", zero, None) == "prompt 1: side A has a row of zeros"
    short = of([[0.6, 0.8], [0.5, 0.0], [0.0, 1.0]], ROWS[1])
    assert "prompt 0: a normalised row on side A has norm off 1 by 0.5" in (
        checks.norm(tokens, "A", short, None) or ""
    )
    assert checks.norm(subject("classify"), "A", of([0.0], [0.0]), None) is None


def test_equal_outputs_of_different_prompts_are_told_unless_float64_has_them_too() -> None:
    told = "prompts 0 and 1 differ, but side A gives both the same output"
    allowed = BOUNDS.bound(Tier.KERNEL, subject().key(1)).oracle
    same = of(A, A)
    assert checks.distinct(subject(), "A", same, None, BOUNDS) == told
    for share, fine in ((0.5, True), (2.0, False)):
        near = of(A, [0.6 + share * allowed, 0.8])
        found = checks.distinct(subject(), "A", same, near, BOUNDS)
        assert (found is None) is fine, share
    assert checks.distinct(subject(), "A", same, of(A, [1.0]), BOUNDS) == told
    score = checks.distinct(subject("classify"), "B", of([0.5], [0.5]), None, BOUNDS)
    assert score == "prompts 0 and 1 differ, but side B gives both the same score"


def test_every_two_of_equal_outputs_are_asked() -> None:
    """Prompts 0 and 1 are the same prompt; 2 is not, and has their output."""
    prompts = (Prompt(tokens=(1,)), Prompt(tokens=(1,)), Prompt(tokens=(2,)))
    case = Case(task="embed", prompts=prompts)
    asked = Subject.of(case, checkpoint="sample", dtype="float64", lengths=(1, 1, 1))
    told = checks.distinct(asked, "A", of(A, A, A), None, BOUNDS) or ""
    assert told.startswith("prompts 0 and 2 differ")
    assert checks.distinct(asked, "A", of(A, A, B), None, BOUNDS) is None


def test_what_changed_places_is_named_and_the_fourth_is_counted() -> None:
    outputs = of(*np.eye(5))
    five = subject(lengths=(1, 1, 1, 1, 1))
    two = (outputs[1], outputs[0], *outputs[2:])
    assert checks.exchanged(five, outputs, two) == (
        "outputs come back in another order: prompt 0 holds prompt 1's, prompt 1 holds prompt 0's"
    )
    three = (outputs[1], outputs[2], outputs[0], *outputs[3:])
    assert checks.exchanged(five, outputs, three).endswith("prompt 2 holds prompt 0's")
    every = (*outputs[1:], outputs[0])
    assert checks.exchanged(five, outputs, every).endswith("prompt 2 holds prompt 3's and 2 more")


def test_rows_that_changed_places_are_named_with_their_prompt() -> None:
    tokens, a = subject("token_embed"), of(*ROWS)
    b = of(ROWS[0], ROWS[1][::-1])
    assert checks.exchanged(tokens, a, b) == (
        "prompt 1: rows come back in another order: row 0 holds row 1's, row 1 holds row 0's"
    )


@pytest.mark.parametrize(("share", "moved"), [(0.5, True), (2.0, False)])
def test_a_row_moved_only_where_another_is_nearer_by_the_factor_of_power(
    share: float, *, moved: bool
) -> None:
    """Two answers a distance of 1 apart, each off its new place by a share of 1 / POWER_FACTOR."""
    off = share / POWER_FACTOR
    a, b = of([0.0, 0.0], [1.0, 0.0]), of([1.0, off], [0.0, off])
    assert bool(checks.exchanged(subject(), a, b)) is moved


def test_an_output_returned_twice_is_no_exchange() -> None:
    a = of([0.0, 1.0], [1.0, 0.0])
    assert checks.exchanged(subject(), a, (a[1], a[1])) == ""
    one = subject(lengths=(1,))
    assert checks.exchanged(one, a[:1], a[1:]) == ""

"""What holds between the prompts of one case, at the edge of each rule.

Passes wrongly if a rule held on both sides of its edge. Ruled out by
`test_scores_within_four_bounds_of_each_other_are_tied` and
`test_a_score_at_the_threshold_is_on_its_upper_side`, which ask on both.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from harness.case import Case, Prompt
from harness.judge.lists import crossings, failures, measured
from harness.judge.output import Output, OutputKind
from harness.judge.subject import Subject
from harness.record import Measurement


def subject(kind: OutputKind, count: int = 2) -> Subject:
    prompts = tuple(Prompt(tokens=(5 + i,)) for i in range(count))
    case = Case(task="embed", prompts=prompts)
    of = Subject.of(case, checkpoint="sample", dtype="float32", lengths=(1,) * count)
    return replace(of, kind=kind)


def of(*rows: list[float]) -> tuple[Output, ...]:
    return tuple(Output.of(np.array(row, dtype=np.float64)) for row in rows)


def test_one_prompt_has_no_order_and_two_have() -> None:
    score = subject(OutputKind.SCORE)
    assert measured(score, of([0.1]), of([0.2]), 0.0) == []
    (found,) = measured(score, of([0.1], [0.2]), of([0.2], [0.1]), 0.0)
    assert (found.metric, found.value, found.bound) == ("rank_inversions", 1.0, 0.0)
    assert found.exceeded


@pytest.mark.parametrize("kind", [kind for kind in OutputKind if kind.token_level])
def test_rows_of_tokens_are_no_list(kind: OutputKind) -> None:
    assert measured(subject(kind), of([0.1], [0.2]), of([0.2], [0.1]), 0.0) == []


def test_vectors_of_classes_have_no_order() -> None:
    two = of([0.1, 0.9], [0.2, 0.8])
    assert measured(subject(OutputKind.LOGIT), two, two, 0.0) == []


def test_scores_within_four_bounds_of_each_other_are_tied() -> None:
    """Two bounds on each side; told in the reason."""
    score, bound = subject(OutputKind.SCORE), 0.125
    for gap, inversions in ((4 * bound, 0.0), (4 * bound + 0.0625, 1.0)):
        (found,) = measured(score, of([0.0], [gap]), of([gap], [0.0]), bound)
        assert found.value == inversions, gap
        assert "within 0.5 count as tied" in found.why


def test_the_drift_of_a_similarity_is_held_to_the_bound() -> None:
    a, b = of([1.0, 0.0], [1.0, 0.0]), of([1.0, 0.0], [0.6, 0.8])
    (found,) = measured(subject(OutputKind.EMBEDDING), a, b, 0.25)
    assert (found.metric, found.bound) == ("similarity_drift", 0.25)
    assert found.value == pytest.approx(0.4)


def test_what_is_beyond_its_bound_is_told_and_what_is_at_it_is_not() -> None:
    ranks = Measurement(metric="rank_inversions", value=2.0, bound=0.0)
    drift = Measurement(metric="similarity_drift", value=0.5, bound=0.25)
    assert failures([ranks]) == "2 pairs of prompts change their order by score"
    assert failures([drift]) == "a similarity of two prompts changes by 0.5, allowed 0.25"
    assert failures([ranks, drift]) == f"{failures([ranks])}; {failures([drift])}"
    kept = [replace(ranks, value=0.0), replace(drift, value=0.25), replace(drift, bound=None)]
    assert failures([*kept]) == ""
    assert failures([kept[0], drift]) == failures([drift])
    assert failures([replace(drift, value=math.nan)])
    assert failures([replace(drift, metric="another")]) == ""
    assert failures([replace(drift, metric="zzz")]) == ""


def test_a_score_at_the_threshold_is_on_its_upper_side() -> None:
    score = subject(OutputKind.SCORE, count=1)
    at, below, above = of([0.5]), of([0.4375]), of([0.625])
    assert crossings(score, at, above, (0.5,)) == ()
    assert crossings(score, above, at, (0.5,)) == ()
    assert crossings(score, below, below, (0.5,)) == ()
    for a, b, told in ((at, below, "0.5 on side A and 0.4375"), (below, at, "0.4375 on side A")):
        (found,) = crossings(score, a, b, (0.5,))
        assert found.startswith(f"prompt 0: score {told}")
        assert found.endswith("on either side of the threshold 0.5")


def test_every_prompt_number_and_threshold_is_asked() -> None:
    a, b = of([0.0, 1.0], [0.0, 0.0]), of([0.0, 0.0], [1.0, 1.0])
    found = crossings(subject(OutputKind.LOGIT), a, b, (0.25, 0.75, 2.0))
    assert [text[:8] for text in found] == ["prompt 0"] * 2 + ["prompt 1"] * 4
    assert crossings(subject(OutputKind.EMBEDDING), a, b, (0.25,)) == ()

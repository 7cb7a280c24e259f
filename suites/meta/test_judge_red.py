"""The judge rejects. Each test hands it one thing that is wrong, beside one that is right.

A rule whose removal leaves this file green is not tested; each of these has been seen red with
its rule taken out.

Passes wrongly if the judge rejected everything, or a rule could go without anybody noticing. Ruled
out by `test_what_is_right_passes_in_every_tier` and suites/meta/test_suites_can_fail.py:
`nan-is-an-answer`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from harness.axes import Cell
from harness.judge import Bounds, Calibration, OracleErrors, Output, oracle_pair
from harness.judge.rules import Rules
from harness.record import Comparison, Outcome, PairRecord, Tier
from suites.unit.judge.pairs import (
    ASYNC,
    BASE,
    CHUNK,
    COMPILE,
    PP,
    World,
    edited,
    fails,
    measured,
    rounded,
    run,
)


@pytest.fixture(scope="module")
def embed() -> World:
    return World.of("embed", normalize=False)


@pytest.fixture(scope="module")
def tokens() -> World:
    return World.of("token_embed", normalize=False)


@pytest.fixture(scope="module")
def logits() -> World:
    return World.of("classify", activation=False)


def test_what_is_right_passes_in_every_tier(embed: World, tokens: World, logits: World) -> None:
    for world in (embed, tokens, logits):
        for cell in (ASYNC, PP):
            assert world.judge(run(cell, world.base)).outcome is Outcome.PASS
        for cell in (CHUNK, COMPILE):
            record = world.judge(run(cell, rounded(world.truth, seed=9)))
            assert record.outcome is Outcome.PASS, record
            assert record.num_compared == sum(o.size for o in world.base)


# ------------------------------------------------------------------------------ wrong values


@pytest.mark.parametrize("cell", [ASYNC, CHUNK, COMPILE], ids=str)
@pytest.mark.parametrize("task", ["embed", "classify"])
def test_exchanged_outputs(cell: Cell, task: str) -> None:
    world = World.of(task, normalize=False) if task == "embed" else World.of(task, activation=False)
    swapped = (world.base[1], world.base[0], *world.base[2:])
    fails(world.judge(run(cell, swapped)), "another order: prompt 0 holds prompt 1's")


def test_one_output_returned_twice_is_not_called_an_order(embed: World) -> None:
    twice = (embed.base[1], *embed.base[1:])
    record = embed.judge(run(ASYNC, twice))
    fails(record, "prompt 0: A and B differ")
    fails(record, "prompts 0 and 1 differ, but side B gives both the same output")
    assert "another order" not in record.reason


@pytest.mark.parametrize("cell", [ASYNC, CHUNK, COMPILE], ids=str)
def test_rows_in_wrong_order(tokens: World, cell: Cell) -> None:
    rows = tokens.base[2].data[::-1]
    fails(tokens.judge(run(cell, edited(tokens.base, 2, rows))), "rows come back in another order")


@pytest.mark.parametrize("cell", [ASYNC, CHUNK, COMPILE], ids=str)
def test_rows_one_off(tokens: World, cell: Cell) -> None:
    rows = np.roll(tokens.base[0].data, 1, axis=0)
    fails(tokens.judge(run(cell, edited(tokens.base, 0, rows))), "row 1 holds row 0's")


@pytest.mark.parametrize("cell", [ASYNC, CHUNK, COMPILE], ids=str)
def test_one_wrong_row_of_many_is_not_averaged_away(tokens: World, cell: Cell) -> None:
    rows = tokens.base[0].data.copy()
    rows[17] *= np.float32(1 + 1e-5)
    record = tokens.judge(run(cell, edited(tokens.base, 0, rows)))
    fails(record, "prompt 0: A and B differ")
    assert record.worst_prompt == 0


@pytest.mark.parametrize("cell", [CHUNK, COMPILE], ids=str)
def test_every_row_off_a_little_fails_as_a_whole_matrix(tokens: World, cell: Cell) -> None:
    # One ill-conditioned row of the baseline widens the bound of rows twentyfold ...
    rows = tokens.base[0].data.copy()
    rows[17] *= np.float32(1 + 2e-5)
    uneven = edited(tokens.base, 0, rows)
    errors = OracleErrors()
    errors.observe(tokens.subject, uneven, tokens.truth)
    bounds = Bounds(errors=errors, calibration=Calibration({}))
    a = run(BASE, uneven)
    assert tokens.judge(run(cell, tokens.base), a, bounds=bounds).outcome is Outcome.PASS
    # ... which no other row may use up in company.
    drifted = edited(tokens.base, 0, tokens.truth[0].float64 * (1 + 1.5e-5))
    record = tokens.judge(run(cell, drifted), a, bounds=bounds)
    fails(record, "A and B differ (matrix_relative_l2 ")
    found = {m.metric: m for m in record.measurements}
    assert not found["oracle_error"].exceeded
    assert found["matrix_oracle_error"].exceeded


@pytest.mark.parametrize("cell", [ASYNC, COMPILE], ids=str)
def test_a_missing_row(tokens: World, cell: Cell) -> None:
    short = edited(tokens.base, 1, tokens.base[1].data[:-1])
    fails(tokens.judge(run(cell, short)), "(7, 24) for 8 tokens")
    both = tokens.judge(run(cell, short), run(BASE, short))
    fails(both, "side A returned shape (7, 24)")


def test_a_missing_output(embed: World) -> None:
    fails(embed.judge(run(ASYNC, embed.base[:-1])), "side B returned 4 outputs for 5 prompts")
    both = embed.judge(run(ASYNC, embed.base[:-1]), run(BASE, embed.base[:-1]))
    fails(both, "side A returned 4 outputs")


def test_another_shape(embed: World) -> None:
    short = edited(embed.base, 3, embed.base[3].data[:-1])
    fails(embed.judge(run(COMPILE, short)), "shape (24,) on side A, (23,) on side B")


def test_another_dtype(embed: World) -> None:
    wide = tuple(Output.of(o.float64) for o in embed.base)
    fails(embed.judge(run(COMPILE, wide)), "dtype float32 on side A, float64 on side B")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("cell", [ASYNC, COMPILE], ids=str)
def test_not_finite(embed: World, cell: Cell, value: float) -> None:
    broken = embed.base[2].data.copy()
    broken[5] = value
    outputs = edited(embed.base, 2, broken)
    fails(embed.judge(run(cell, outputs)), "1 of 24 elements on side B are not finite")
    # The same NaN on both sides is bit for bit equal, and no answer.
    fails(embed.judge(run(cell, outputs), run(BASE, outputs)), "on side A are not finite")


@pytest.mark.parametrize("cell", [ASYNC, CHUNK, COMPILE], ids=str)
def test_another_scale(embed: World, cell: Cell) -> None:
    scaled = tuple(Output.of(o.data * np.float32(1.001)) for o in embed.base)
    record = embed.judge(run(cell, scaled))
    fails(record, "against float64, A is nearer")
    assert measured(record)["one_minus_cosine"] < 1e-12  # cosine cannot see it


@pytest.mark.parametrize("cell", [ASYNC, CHUNK, COMPILE], ids=str)
def test_a_detour_through_bfloat16(embed: World, cell: Cell) -> None:
    cut = tuple(Output.of((o.bits & np.uint32(0xFFFF0000)).view(np.float32)) for o in embed.base)
    fails(embed.judge(run(cell, cut)), "A and B differ")


def test_one_ulp_in_the_exact_tier(embed: World) -> None:
    data = embed.base[4].data.copy()
    data[0] = np.nextafter(data[0], np.float32(9))
    record = embed.judge(run(PP, edited(embed.base, 4, data)))
    fails(record, "prompt 4: A and B differ in 1 elements by up to 1 ulp")
    assert measured(record)["elements off by 1 ulp"] == 1


def test_the_sign_of_zero_in_the_exact_tier(embed: World) -> None:
    plus, minus = embed.base[1].data.copy(), embed.base[1].data.copy()
    plus[3], minus[3] = 0.0, -0.0
    a = run(BASE, edited(embed.base, 1, plus))
    fails(embed.judge(run(ASYNC, edited(embed.base, 1, minus)), a), "by up to 0 ulp")


def test_a_wrong_logit(logits: World) -> None:
    wrong = edited(logits.base, 2, logits.base[2].data + np.float32(1e-4))
    record = logits.judge(run(COMPILE, wrong))
    fails(record, "scaled_abs A")
    assert record.worst_prompt == 2


def test_an_unnormalised_output_on_both_sides() -> None:
    world = World.of("embed", normalize=True)
    doubled = tuple(Output.of(o.data * np.float32(2)) for o in world.base)
    record = world.judge(run(ASYNC, doubled), run(BASE, doubled))
    fails(record, "a normalised row on side A has norm off 1 by 1")
    # With normalize=None the oracle decides: its rows are unit vectors.
    inferred = dataclasses.replace(world, subject=World.of("embed").subject)
    fails(inferred.judge(run(ASYNC, doubled), run(BASE, doubled)), "norm off 1")


def test_a_row_of_zeros_on_both_sides(tokens: World) -> None:
    data = tokens.base[0].data.copy()
    data[7] = 0
    zeroed = edited(tokens.base, 0, data)
    fails(tokens.judge(run(ASYNC, zeroed), run(BASE, zeroed)), "a row of zeros")


@pytest.mark.parametrize("task", ["embed", "classify"])
def test_different_prompts_with_one_output_on_both_sides(task: str) -> None:
    world = World.of(task)
    same = (world.base[0], world.base[0], *world.base[2:])
    record = world.judge(run(ASYNC, same), run(BASE, same), oracle=None)
    fails(record, "prompts 0 and 1 differ, but side A gives both the same")
    fails(world.judge(run(ASYNC, same), run(BASE, same)), "gives both the same")


def test_equal_prompts_may_have_equal_outputs(embed: World) -> None:
    prompts = (embed.subject.prompts[1], *embed.subject.prompts[1:])
    subject = dataclasses.replace(embed.subject, prompts=prompts)
    world = dataclasses.replace(embed, subject=subject)
    same = (embed.base[1], *embed.base[1:])
    record = world.judge(run(ASYNC, same), run(BASE, same), oracle=None)
    assert record.outcome is Outcome.PASS, record


def test_equal_outputs_that_float64_has_as_well_are_no_failure(embed: World) -> None:
    same = (embed.base[0], embed.base[0], *embed.base[2:])
    truth = [embed.truth[0], embed.truth[0], *embed.truth[2:]]
    record = embed.judge(run(ASYNC, same), run(BASE, same), oracle=truth)
    assert record.outcome is Outcome.PASS, record


# ------------------------------------------------------------------- between the prompts of a case


def test_scores_that_change_places_beyond_a_tie(logits: World) -> None:
    first, second = (o.data.copy() for o in logits.base[:2])
    swapped = edited(edited(logits.base, 0, second), 1, first)
    record = logits.judge(run(COMPILE, swapped))
    fails(record, "pairs of prompts change their order by score")
    assert measured(record)["rank_inversions"] >= 1


def test_scores_that_change_places_within_a_tie_are_no_failure(logits: World) -> None:
    close = [logits.truth[0], Output.of(logits.truth[0].float64 + 1e-7), *logits.truth[2:]]
    world = dataclasses.replace(logits, truth=close, base=rounded(close, size=1e-9))
    other = (world.base[0], edited(world.base, 1, close[0].float64 - 2e-7)[1], *world.base[2:])
    record = world.judge(run(COMPILE, other))
    assert record.outcome is Outcome.PASS, record
    assert measured(record)["rank_inversions"] == 0


def test_similarities_that_move_together_fail_before_any_one_answer_does(embed: World) -> None:
    # Each answer moves towards the sum of all by nine tenths of its bound.
    bound = embed.bounds.bound(Tier.KERNEL, embed.subject.key(1)).oracle
    total = sum(o.float64 / np.linalg.norm(o.float64) for o in embed.truth)
    common = total / np.linalg.norm(total)
    moved = tuple(
        Output.of((o.float64 + 0.9 * bound * np.linalg.norm(o.float64) * common).astype("float32"))
        for o in embed.truth
    )
    record = embed.judge(run(COMPILE, moved))
    fails(record, "a similarity of two prompts changes by")
    found = {m.metric: m for m in record.measurements}
    assert not found["oracle_error"].exceeded
    assert found["similarity_drift"].exceeded


def test_a_score_on_another_side_of_a_users_threshold_is_told(logits: World) -> None:
    threshold = float(logits.base[2].data[0]) - 1e-7
    bounds = dataclasses.replace(logits.bounds, rules=Rules(thresholds=(threshold,)))
    below = edited(logits.base, 2, logits.base[2].data - np.float32(3e-7))
    record = logits.judge(run(COMPILE, below), bounds=bounds)
    assert record.outcome is Outcome.PASS, record
    assert any("prompt 2: logit" in w and "the threshold" in w for w in record.warnings)
    assert not logits.judge(run(COMPILE, logits.base), bounds=bounds).warnings
    assert not logits.judge(run(COMPILE, below)).warnings


# ------------------------------------------------------------------------- the baseline itself


def test_a_wrong_baseline_fails_against_float64(embed: World) -> None:
    def against(outputs: tuple[Output, ...], **changes: Any) -> PairRecord:
        options: dict[str, Any] = {"power": embed.power, "bounds": embed.bounds, **changes}
        return oracle_pair(embed.subject, run(BASE, outputs), embed.truth, **options)

    assert against(embed.base).outcome is Outcome.PASS
    fails(against(rounded(embed.truth, size=2e-5)), "against float64, bound 1e-05")
    fails(against(embed.base[:-1]), "4 outputs for 5 prompts")
    fails(against(edited(embed.base, 0, embed.base[0].data * np.nan)), "not finite")
    assert against(()).outcome is Outcome.VACUOUS
    assert against(embed.base, power=None).outcome is Outcome.VACUOUS
    same = (embed.base[0], embed.base[0], *embed.base[2:])
    fails(against(same), "the same output")
    # 3e-5 is beyond the cap: excused by a trusted twin that is 2e-5 off, not by one at 1e-6.
    worse = rounded(embed.truth, size=3e-5, seed=7)
    fails(against(worse), "against float64")
    excused = against(worse, twin=rounded(embed.truth, size=2e-5, seed=8))
    assert excused.outcome is Outcome.PASS
    fails(against(worse, twin=rounded(embed.truth, size=1e-6, seed=8)), "against float64")
    # A hopeless twin lifts the cap no further than TWIN_LIFT.
    bad = rounded(embed.truth, size=1e-2, seed=8)
    fails(against(rounded(embed.truth, size=2e-4), twin=bad), "bound 8e-05")


def test_a_baseline_that_crashed_is_an_error_against_float64(embed: World) -> None:
    crashed = run(BASE, (), error="worker 0 died")
    record = oracle_pair(
        embed.subject, crashed, embed.truth, power=embed.power, bounds=embed.bounds
    )
    assert record.outcome is Outcome.ERROR
    assert "worker 0 died" in record.reason


def test_a_baseline_that_forgets_to_normalise_is_told_so() -> None:
    world = World.of("embed", normalize=True)
    doubled = tuple(Output.of(o.data * np.float32(2)) for o in world.base)
    record = oracle_pair(
        world.subject, run(BASE, doubled), world.truth, power=world.power, bounds=world.bounds
    )
    fails(record, "a normalised row on side B has norm off 1 by 1")


def test_an_edge_between_two_equally_wrong_cells_is_no_finding(embed: World) -> None:
    a, b = Cell.parse("pp=2"), Cell.parse("pp=2,compile=compiled")
    wrong = rounded(embed.truth, size=1e-3, seed=4)
    record = embed.judge(run(b, wrong), run(a, wrong), Comparison.EDGE)
    assert record.outcome is Outcome.PASS
    assert "both are further from float64" in record.warnings[0]
    # One of them right: the edge is where it changes, whichever side is wrong.
    fails(embed.judge(run(b, embed.base), run(a, wrong), Comparison.EDGE), "B is nearer")
    fails(embed.judge(run(b, wrong), run(a, embed.base), Comparison.EDGE), "A is nearer")


def test_a_variant_better_than_the_baseline_passes(embed: World) -> None:
    better = tuple(Output.of(o.data.astype(np.float32)) for o in embed.truth)
    record = embed.judge(run(COMPILE, better))
    assert record.outcome is Outcome.PASS
    assert measured(record)["oracle_error"] < measured(record)["oracle_error_reference"]


def test_an_empty_calibration_says_that_the_oracle_stands_alone(embed: World) -> None:
    bounds = Bounds(errors=embed.bounds.errors, calibration=Calibration({}))
    record = embed.judge(run(CHUNK, rounded(embed.truth, seed=9)), bounds=bounds)
    assert any("the oracle bound stands alone" in m.why for m in record.measurements)

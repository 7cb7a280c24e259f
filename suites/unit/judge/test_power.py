"""Power: a case counts when its output moves plainly as its input is changed.

Passes wrongly if every movement counted as plain. Ruled out by suites/meta/test_suites_can_fail.py:
`every-movement-is-plain`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.judge import Output, Perturbation, power
from harness.record import Tier
from suites.unit.judge.pairs import World, edited, rounded

POINT = 12


@pytest.fixture(scope="module")
def embed() -> World:
    return World.of("embed", normalize=False)


@pytest.fixture(scope="module")
def tokens() -> World:
    return World.of("token_embed", normalize=False)


def change(output: Output, token: int = 0) -> Perturbation:
    return Perturbation(name="token replaced", prompt=0, token=token, output=output)


def blind(world: World, output: Output, token: int = 0, *, causal: bool = True) -> bool:
    record = power(world.subject, world.base, [change(output, token)], world.bounds, causal=causal)
    return record.blind


@pytest.mark.parametrize(("factor", "is_blind"), [(0.0, True), (0.9, True), (1.1, False)])
def test_an_output_has_power_from_a_hundred_tolerances_on(
    embed: World, *, factor: float, is_blind: bool
) -> None:
    threshold = embed.bounds.power(embed.subject.key(0))
    moved = embed.base[0].float64 * (1 + factor * threshold)
    assert blind(embed, Output.of(moved)) is is_blind


def test_no_perturbation_is_no_proof(embed: World) -> None:
    assert power(embed.subject, embed.base, [], embed.bounds, causal=True).blind


def test_one_prompt_that_stands_still_blinds_the_case(embed: World) -> None:
    moved = rounded(embed.truth, size=0.5)
    changes = [change(moved[0]), Perturbation(name="x", prompt=1, token=0, output=embed.base[1])]
    record = power(embed.subject, embed.base, changes, embed.bounds, causal=True)
    assert record.blind
    assert [m.exceeded for m in record.movements] == [True, False]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_numbers_are_not_movement(embed: World, value: float) -> None:
    assert blind(embed, edited(embed.base, 0, embed.base[0].data * 0 + value)[0])


def moved_from(world: World, first: int) -> np.ndarray:
    rows = world.base[0].data.copy()
    rows[first:] *= np.float32(1.5)
    return rows


def test_rows_from_the_changed_token_on_must_move(tokens: World) -> None:
    assert not blind(tokens, Output.of(moved_from(tokens, POINT)), POINT)
    # Rows before it cannot see it: asked to move as well, they blind the case.
    assert blind(tokens, Output.of(moved_from(tokens, POINT)), 0)
    assert blind(tokens, Output.of(moved_from(tokens, POINT)), POINT, causal=False)
    assert not blind(tokens, Output.of(moved_from(tokens, 0)), POINT, causal=False)


def test_a_token_that_moves_only_its_own_row_proves_nothing(tokens: World) -> None:
    rows = tokens.base[0].data.copy()
    rows[POINT] *= np.float32(1.5)
    assert blind(tokens, Output.of(rows), POINT)


def test_one_row_far_away_and_many_close_by_prove_nothing(tokens: World) -> None:
    rows = tokens.base[0].data * np.float32(1 + 1e-5)  # above a tolerance, below a hundred
    rows[POINT] *= np.float32(1.5)
    assert blind(tokens, Output.of(rows), POINT)


def test_a_row_that_stands_still_blinds_the_case(tokens: World) -> None:
    rows = moved_from(tokens, POINT)
    rows[20] = tokens.base[0].data[20]
    assert blind(tokens, Output.of(rows), POINT)


def test_a_perturbation_past_the_end_proves_nothing(tokens: World) -> None:
    late = change(Output.of(moved_from(tokens, 0)), 40)
    record = power(tokens.subject, tokens.base, [late], tokens.bounds, causal=True)
    assert record.blind
    assert [m.value for m in record.movements] == [0.0]


def test_a_perturbation_keeps_the_shape(embed: World) -> None:
    with pytest.raises(ValueError, match=r"expected \(24,\), got \(23,\)"):
        blind(embed, Output.of(embed.base[0].data[:-1]))


def test_a_blind_movement_is_told_with_what_it_needed(embed: World) -> None:
    record = power(embed.subject, embed.base, [change(embed.base[0])], embed.bounds, causal=True)
    (movement,) = record.movements
    assert movement.value == 0
    assert (movement.bound, movement.unit) == (100, "tolerances")
    tolerance = embed.bounds.bound(Tier.REORDERED, embed.subject.key(0)).oracle
    assert "prompt 0, token replaced" in movement.metric
    assert f"one tolerance of the bucket is relative_l2 {tolerance:.3g}" in movement.why


def test_a_movement_is_told_in_tolerances_of_the_case(embed: World) -> None:
    tolerance = embed.bounds.bound(Tier.REORDERED, embed.subject.key(0)).oracle
    moved = Output.of(embed.base[0].float64 * (1 + 250 * tolerance))
    (movement,) = power(
        embed.subject, embed.base, [change(moved)], embed.bounds, causal=True
    ).movements
    assert movement.value == pytest.approx(250, rel=1e-6)


@pytest.mark.parametrize(
    ("factors", "is_blind"),
    [((2.0, 0.5), False), ((0.9, 0.5), True), ((2.0, 0.0), True)],
    ids=["one near its old place", "none plain", "one stands still"],
)
def test_a_score_has_to_move_plainly_once_and_never_stand_still(
    *, factors: tuple[float, ...], is_blind: bool
) -> None:
    world = World.of("score", activation=False)
    threshold = world.bounds.power(world.subject.key(0))
    changes = [
        Perturbation(
            name=f"chunk {index}",
            prompt=0,
            token=0,
            output=Output.of(world.base[0].float64 + factor * threshold),
        )
        for index, factor in enumerate(factors)
    ]
    record = power(world.subject, world.base, changes, world.bounds, causal=True)
    assert record.blind is is_blind, record.movements


@pytest.mark.parametrize("task", ["embed", "token_embed"])
@pytest.mark.parametrize(
    ("factors", "is_blind"),
    [((2.0, 0.5), False), ((0.9, 0.5), True), ((2.0, 0.0), True), ((0.9,), True), ((2.0,), False)],
    ids=["one near its old place", "none plain", "one stands still", "not plain", "plain"],
)
def test_a_lone_token_has_to_move_plainly_once_and_never_stand_still(
    task: str, *, factors: tuple[float, ...], is_blind: bool
) -> None:
    world = World.of(task, normalize=False)
    # The rest of the case is as long as it was, and one movement below a hundred blinds it there.
    subject = replace(world.subject, lengths=(1, *world.subject.lengths[1:]))
    row = world.base[0].float64 if task == "embed" else world.base[0].float64[:1]
    base = (Output.of(row), *world.base[1:])
    threshold = world.bounds.power(subject.key(0))
    changes = [
        Perturbation(name="other", prompt=0, token=0, output=Output.of(row * (1 + f * threshold)))
        for f in factors
    ]
    record = power(subject, base, changes, world.bounds, causal=True)
    assert record.blind is is_blind, record.movements
    if len(factors) > 1:
        long = [replace(change, output=world.base[1], prompt=1) for change in changes[:1]]
        assert power(subject, base, [*changes, *long], world.bounds, causal=True).blind

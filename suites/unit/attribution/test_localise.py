"""The first place two runs part, however their rows were cut into steps.

Passes wrongly if only the answers were compared, so that the last layer were always the first
place. Ruled out by suites/meta/test_suites_can_fail.py: `only-answers-are-compared`.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness import token_profile
from harness.judge.output import Float64, Output
from harness.localise import chunk_edges, localise, noise
from harness.record import NO_LAYER
from harness.systems.base import SystemRun, TapRows

WIDTH, LENGTH, LAYERS = 4, 10, 3
WHOLE = [[["0", 0, LENGTH, LENGTH]]]
CHUNKED = [[["0", 0, 4, LENGTH]], [["0", 4, 4, LENGTH]], [["0", 8, 2, LENGTH]]]


def states(seed: int = 0) -> Float64:
    """[layers, tokens, width]"""
    return np.random.default_rng(seed).standard_normal((LAYERS, LENGTH, WIDTH))


def run(hidden: Float64, plan: list, output: Float64 | None = None) -> SystemRun:
    """A run of one prompt with these hidden states, executed as planned."""
    taps = tuple(
        TapRows(prompt=0, layer=layer, step=index, start=start, rows=rows[start : start + count])
        for index, step in enumerate(plan)
        for _, start, count, _ in step
        for layer, rows in enumerate(hidden)
    )
    answer = hidden[-1, -1] if output is None else output
    return SystemRun(outputs=(Output.of(answer),), plan=plan, witness={}, taps=taps)


def test_equal_states_in_other_chunks_agree() -> None:
    found = localise(run(states(), WHOLE), run(states(), CHUNKED), threshold=0.0)
    assert found.first is None
    assert found.token_errors == ((0.0,) * LENGTH,)
    assert found.chunk_edges == ((4, 8),)


@pytest.mark.parametrize(("token", "chunk"), [(0, 0), (3, 0), (4, 1), (7, 1), (9, 2)])
def test_first_wrong_row(token: int, chunk: int) -> None:
    wrong = states()
    wrong[1:, token:] += 1.0
    found = localise(run(states(), WHOLE), run(wrong, CHUNKED), threshold=0.1).first
    assert found is not None
    assert (found.step, found.chunk, found.layer, found.token) == (chunk, chunk, 1, token)


def test_earlier_step_comes_before_lower_layer() -> None:
    wrong = states()
    wrong[2, 1] += 1.0
    wrong[0, 9] += 1.0
    found = localise(run(states(), WHOLE), run(wrong, CHUNKED), threshold=0.1).first
    assert found is not None
    assert (found.step, found.layer, found.token) == (0, 2, 1)


def test_threshold_zero_means_any_bit() -> None:
    wrong = states()
    wrong[1, 5, 0] = np.nextafter(wrong[1, 5, 0], 9.0)
    plain = run(states(), WHOLE)
    found = localise(plain, run(wrong, CHUNKED), threshold=0.0).first
    assert found is not None
    assert (found.layer, found.token) == (1, 5)
    assert localise(plain, run(wrong, CHUNKED), threshold=1e-9).first is None


def test_a_sign_of_zero_is_a_bit() -> None:
    left, right = states(), states()
    left[0, 0], right[0, 0] = 0.0, -0.0
    assert localise(run(left, WHOLE), run(right, WHOLE), threshold=0.0).first is not None


def test_nan_is_far() -> None:
    wrong = states()
    wrong[0, 2, 0] = np.nan
    found = localise(run(states(), WHOLE), run(wrong, WHOLE), threshold=1e9).first
    assert found is not None
    assert found.token == 2


def test_answer_lost_after_the_last_layer() -> None:
    hidden = states()
    found = localise(
        run(hidden, WHOLE), run(hidden, CHUNKED, output=hidden[0, 0]), threshold=0.1
    ).first
    assert found is not None
    assert (found.step, found.chunk, found.layer, found.token) == (2, 2, LAYERS, LENGTH - 1)


def test_a_system_that_tells_nothing_of_its_layers_has_none_named() -> None:
    hidden = states()
    bare, wrong = (
        SystemRun(outputs=(Output.of(answer),), plan=CHUNKED, witness={}, taps=())
        for answer in (hidden[-1, -1], hidden[0, 0])
    )
    found = localise(bare, wrong, threshold=0.1).first
    assert found is not None
    assert (found.step, found.chunk, found.layer, found.token) == (2, 2, NO_LAYER, LENGTH - 1)


def test_token_rows_lost_after_the_last_layer() -> None:
    hidden = states()
    lost = hidden[-1].copy()
    lost[6] = 0.0
    found = localise(
        run(hidden, WHOLE, output=hidden[-1]), run(hidden, WHOLE, output=lost), threshold=0.0
    )
    assert found.first is not None
    assert (found.first.layer, found.first.token) == (LAYERS, 6)
    assert [e > 0 for e in found.token_errors[0]] == [n == 6 for n in range(LENGTH)]


def test_noise_is_the_typical_row() -> None:
    other = states()
    other[:, :, :] *= 1 + 1e-6
    other[0, 0] += 5.0
    assert noise(run(states(), WHOLE), run(other, CHUNKED)) == pytest.approx(1e-6, rel=1e-3)


def test_edges_of_several_prompts() -> None:
    plan = [[["0", 0, 4, 6], ["1", 0, 2, 2]], [["0", 4, 2, 6]]]
    assert chunk_edges(plan, 2) == ((4,), ())


def test_the_map_shows_every_layer_and_token() -> None:
    wrong = states()
    wrong[1:, 4:] *= -1.0
    found = localise(run(states(), WHOLE), run(wrong, CHUNKED), threshold=0.1)
    expected = [[2.0 * (layer >= 1 and t >= 4) for t in range(LENGTH)] for layer in range(LAYERS)]
    assert np.asarray(found.layer_errors) == pytest.approx(np.asarray([expected]))
    # A row that points the other way: cosine -1, and relative L2 2.
    assert np.asarray(found.token_cosines) == pytest.approx(np.asarray([expected[-1]]))


def test_a_scaled_row_turns_nowhere_and_a_zero_row_has_no_direction() -> None:
    wrong = states()
    wrong[-1, 2] *= 3.0
    wrong[-1, 3] = 0.0
    found = localise(run(states(), WHOLE), run(wrong, WHOLE), threshold=0.1)
    assert found.token_errors[0][2:4] == pytest.approx((2.0, 1.0))
    assert found.token_cosines[0][2] == pytest.approx(0.0, abs=1e-15)
    assert found.token_cosines[0][3] == float("inf")


def test_a_map_too_large_for_a_record_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_profile, "MAX_MAP_ENTRIES", LAYERS * LENGTH - 1)
    found = localise(run(states(), WHOLE), run(states(1), WHOLE), threshold=0.1)
    assert found.layer_errors == ((),)
    assert len(found.token_errors[0]) == LENGTH

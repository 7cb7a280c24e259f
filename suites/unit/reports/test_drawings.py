"""Drawings of a failure: the map of layers by tokens, the text, the bars, the sparkline.

Passes wrongly if no square of a map stood for two tokens, so that it did not matter which of them
it shows. Ruled out by suites/meta/test_suites_can_fail.py: `a-square-shows-its-first-token`.
"""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.html.bar_drawing import MAX_BARS, draw_bars
from reports.html.heat import STEPS, Heat
from reports.html.length_drawing import LEAST, draw_lengths
from reports.html.map_drawing import MAX_COLUMNS, MAX_ROWS, draw_map
from reports.html.prompt_drawing import AFTER, BEFORE, draw_prompt
from reports.html.spark_drawing import draw_spark
from reports.html.token_drawing import LEFT, RIGHT

ERRORS = st.floats(0, 10) | st.sampled_from([0.0, math.nan, math.inf])


@given(st.integers(1, 60), st.integers(1, 500), st.data())
def test_a_map_keeps_the_worst_of_what_it_joins(
    layers: int, tokens: int, data: st.DataObject
) -> None:
    layer, token = data.draw(st.integers(0, layers - 1)), data.draw(st.integers(0, tokens - 1))
    errors = [[0.0] * tokens for _ in range(layers)]
    errors[layer][token] = data.draw(ERRORS.filter(lambda e: e != 0))
    shape = draw_map(errors, (), None)
    assert shape is not None
    assert len(shape.levels) <= MAX_ROWS
    assert {len(row) for row in shape.levels} == {math.ceil(tokens / shape.tokens_per_column)}
    assert len(shape.levels[0]) <= MAX_COLUMNS
    hot = [(r, c) for r, row in enumerate(shape.levels) for c, s in enumerate(row) if s != "0"]
    assert hot == [(layer // shape.layers_per_row, token // shape.tokens_per_column)]
    # Every path stays inside the drawing.
    for _, path in shape.paths:
        xs = [float(x) for x in re.findall(r"[MH]([\d.]+)", path)]
        assert LEFT <= min(xs) <= max(xs) <= RIGHT


def test_a_map_of_thousands_is_few_elements() -> None:
    errors = [[0.0] * 100 + [1e-3 * (layer + 1)] * 300 for layer in range(31)]
    shape = draw_map(errors, (64, 128), 100)
    assert shape is not None
    assert len(shape.paths) <= STEPS + 1
    assert sum(len(path) for _, path in shape.paths) < 6_000
    assert "Rows differ from layer 0 to 30, from token 100 to 399" in shape.alternative
    assert [e.label for e in shape.edges] == ["64", "128"]


def test_the_last_step_is_named_by_the_largest_of_all() -> None:
    heat = Heat.of([1e-6, 1.12])
    assert heat.edge(STEPS) == heat.edge(heat.step(1.12)) == 1.12
    shape = draw_map([[1e-6, 1.12]], (), 1)
    assert shape is not None
    assert shape.scale[-1] == "1.12"
    assert "Token 1 is where the two runs part" in shape.alternative


def test_nothing_recorded_is_no_map() -> None:
    assert draw_map((), (), None) is None
    assert draw_map(((), ()), (), None) is None
    assert draw_prompt((), (1.0,), (), None) is None
    assert draw_prompt(("a", "b"), (1.0,), (), None) is None


def test_a_long_prompt_is_cut_around_the_first_difference() -> None:
    count = 4_000
    shape = draw_prompt([f"w{i}" for i in range(count)], [0.0] * count, (2_000,), 2_000)
    assert shape is not None
    assert (shape.before, shape.after) == (2_000 - BEFORE, count - 2_000 - AFTER)
    first = next(p for p in shape.pieces if p.first)
    assert (first.index, first.text, first.chunk) == (2_000, "w2000", True)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_bars_lose_no_element(counts: list[int]) -> None:
    classes = [("1" if not i else f"{2**i}-{2 ** (i + 1) - 1}", n) for i, n in enumerate(counts)]
    shape = draw_bars(classes)
    assert len(shape.bars) <= MAX_BARS
    assert sum(int(bar.count.replace(",", "")) for bar in shape.bars) == sum(counts)
    assert all(len(bar.label) <= 11 for bar in shape.bars)
    assert all(bar.x + bar.width <= shape.width for bar in shape.bars)


@pytest.mark.parametrize("shares", [(), (None,), (0.5,), (1e-9, None, 0.2, math.inf, 3.0)])
def test_a_sparkline_draws_what_was_measured(shares: tuple[float | None, ...]) -> None:
    shape = draw_spark(shares)
    assert len(shape.points) == sum(s is not None for s in shares)
    assert all(0 <= y <= shape.height and 0 <= x <= shape.width for x, y in shape.points)
    if len(shape.points) == 4:
        over = [y < shape.bound for _, y in shape.points]
        assert over == [False, False, True, True]
        assert shape.path.count("M") == 2, "a run that did not measure it leaves a gap"


def test_lengths_are_binned_by_doublings_and_every_prompt_is_seen() -> None:
    bins = (("1 token", 1), ("2 to 3 tokens", 0), ("4 to 7 tokens", 400))
    shape = draw_lengths(bins)
    assert [bar.title for bar in shape.bars] == ["1 token: 1", "4 to 7 tokens: 400"]
    assert all(bar.height >= LEAST for bar in shape.bars)
    assert all(bar.y >= 0 and bar.y + bar.height == shape.height for bar in shape.bars)
    assert shape.bars[-1].x + shape.bars[-1].width <= shape.width
    assert draw_lengths(()).bars == ()


def test_what_differs_wholly_is_plain_to_see_even_if_all_of_it_does() -> None:
    """Two runs a whole vector apart at every token are not drawn in the palest colour."""
    heat = Heat.of([1.0, 1.2, 1.5])
    assert [heat.step(v) for v in (0.0, 1.0, 1.5)] == [0, 6, 7]
    assert heat.step(1e-2) < heat.step(1.0)

"""Colours of the report: every text on every ground it stands on reaches 4.5 : 1 (WCAG 2.2, AA).

Passes wrongly if the colours that are measured were not those of the style sheet that is shown.
Ruled out by suites/meta/test_suites_can_fail.py: `quiet-ink-is-pale`.
"""

from __future__ import annotations

import re

import pytest

from reports.html.heat import STEPS, Heat
from reports.html.render import TEMPLATES
from reports.view.looks import LOOKS
from reports.view.text import number, percent, share_of_bound, visible

PAIR = re.compile(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)")
STYLE = (TEMPLATES / "report.css").read_text(encoding="utf-8")
COLOURS = {name: (light, dark) for name, light, dark in PAIR.findall(STYLE)}
TEXTS = [
    *((ink, ground) for ink in ("ink", "quiet", "link") for ground in ("ground", "raised", "sunk")),
    *((f"{k}-ink", k) for k in ("pass", "fail", "error", "vacuous", "inapplicable")),
    *((f"{k}-ink", "raised") for k in ("fail", "error", "vacuous")),
    ("ink", "vacuous"),
    *(("ink", f"h{step}") for step in range(1, STEPS + 1)),
    ("ground", "ink"),
]


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, by the formula of WCAG 2.2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_formula_on_its_known_ends() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == pytest.approx(1)


@pytest.mark.parametrize(("text", "ground"), TEXTS)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read(text: str, ground: str, theme: int) -> None:
    assert contrast(COLOURS[text][theme], COLOURS[ground][theme]) >= 4.5


def test_every_state_differs_in_shape_and_word_too() -> None:
    looks = list(LOOKS.values())
    assert len({look.glyph for look in looks}) == len({look.word for look in looks}) == len(looks)
    for look in looks:
        assert f".cell.{look.css} " in STYLE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (12_345.0, "12,345"),
        (112_999.9, "113,000"),
        (1e-5, "1e-5"),
        (1.234e-7, "1.23e-7"),
        (0.9996, "1"),
        (float("nan"), "not a number"),
        (float("-inf"), "-infinite"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_shares() -> None:
    assert percent(0.0294) == "2.9\u00a0%"
    assert share_of_bound(5e-6, 1e-5) == "50\u00a0% of the bound"
    assert share_of_bound(3.4e-5, 1e-5) == "3.4 times the bound"
    assert share_of_bound(1.0, 0.0) == "the bound is 0"
    assert share_of_bound(float("nan"), 1.0) == "no bound holds it"
    assert share_of_bound(1.0, None) == ""


def test_text_that_could_act_is_spelled_out() -> None:
    assert visible("a\x1b[0m\u202eb\r\ud800") == "a\\u{1b}[0m\\u{202e}b\\u{d}\\u{d800}"
    for harmless in ("plain", "two\nlines\tand a tab", "naïve 東京 👩\u200d🔬 हिन्दी"):
        assert visible(harmless) == harmless


def test_heat_steps_grow_with_the_error_and_with_the_colour() -> None:
    heat = Heat.of([0.0, 1e-7, 1e-3, 2.0, float("nan")])
    steps = [heat.step(e) for e in (0.0, 1e-12, 1e-7, 1e-5, 1e-3, 0.5, 2.0, 1e9)]
    assert steps == sorted(steps)
    assert (steps[0], steps[1], steps[-1]) == (0, 1, STEPS)
    assert heat.step(float("nan")) == heat.step(float("inf")) == STEPS
    assert all(heat.step(0.99 * heat.edge(n)) == n for n in range(1, STEPS + 1))
    # In light the last step is the darkest, in dark the brightest: contrast with the ground grows.
    for theme in (0, 1):
        ground = COLOURS["sunk"][theme]
        far = [contrast(COLOURS[f"h{n}"][theme], ground) for n in range(3, STEPS + 1)]
        assert far == sorted(far)

"""Finding one's way in a report: search, filters, addresses that can be sent, the keyboard.

Passes wrongly if the page searched what it was given, and a case was not. Ruled out by
suites/meta/test_suites_can_fail.py: `a-case-is-not-indexed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from reports.html import render
from reports.load import load_run
from suites.meta.browser.visits import Visit, until
from suites.unit.reports.fixtures import failing_run, many_cases
from suites.unit.reports.parts import CHECKPOINTS

pytestmark = pytest.mark.xdist_group("browser")

ROWS = "#case-rows tr"
MAX_BYTES = 5 * 1024 * 1024


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 cases, a tenth of which fail."""
    path = render(many_cases(10_000), tmp_path_factory.mktemp("large") / "report.html")
    assert path.stat().st_size <= MAX_BYTES
    return path


def shown(page: Page) -> str:
    return page.locator("#case-count").inner_text()


def hash_of(page: Page) -> str:
    return str(page.evaluate("location.hash"))


def test_ten_thousand_cases_are_searched_and_filtered(
    visit: Callable[..., Visit], large: Path
) -> None:
    seen = visit(large)
    page = seen.page
    assert shown(page) == "10,000 of 10,000 cases; the first 50 are shown"
    expect(page.locator(ROWS)).to_have_count(50)
    page.locator("#case-more").click()
    expect(page.locator(ROWS)).to_have_count(100)
    names = page.locator(f"{ROWS} th").all_inner_texts()
    assert len(set(names)) == 100, "none is drawn twice"
    page.locator("#case-outcome").select_option("FAIL")
    assert shown(page).startswith("1,000 of 10,000 cases")
    assert {t.inner_text() for t in page.locator(f"{ROWS} .tag").all()} == {"✕ FAIL"}
    page.locator("#case-q").fill("PROMPT 4217")
    assert shown(page) == "0 of 10,000 cases"
    page.locator("#case-outcome").select_option("")
    assert shown(page) == "1 of 10,000 cases"
    assert "prompt 4217 " in page.locator(ROWS).inner_text()
    page.locator("#case-clear").click()
    assert shown(page).startswith("10,000 of")
    page.locator("#case-checkpoint").select_option("tiny-bert")
    assert shown(page).startswith("5,000 of")
    assert seen.requests == [large.as_uri()]
    assert not seen.complaints


def test_a_view_can_be_sent(visit: Callable[..., Visit], large: Path) -> None:
    page = visit(large).page
    page.locator("#case-q").fill("one token")
    page.locator("#case-outcome").select_option("FAIL")
    address = "#cases?q=one+token&outcome=FAIL"
    until(page, "(hash) => location.hash === hash", address)
    found = shown(page)
    again = visit(large, fragment=address).page
    assert shown(again) == found
    assert again.locator("#case-q").input_value() == "one token"
    assert again.locator("#cases h2").is_visible()


def test_one_case_has_an_address(visit: Callable[..., Visit], large: Path) -> None:
    page = visit(large).page
    page.locator("#case-q").fill("prompt 9999")
    name = page.locator(f"{ROWS} th a").inner_text()
    page.locator(f"{ROWS} th a").click()
    assert hash_of(page) == f"#case={name}"
    assert page.locator("tr.shown th").inner_text() == name
    again = visit(large, fragment=f"#case={name}").page
    assert again.locator("tr.shown th").inner_text() == name
    assert again.locator(ROWS).count() == 1


@pytest.mark.parametrize("fragment", ["#case=%", "#case=none", "#cases?q=%3Cscript%3E", "#no-such"])
def test_an_address_that_leads_nowhere_breaks_nothing(
    visit: Callable[..., Visit], reports: dict[str, Path], fragment: str
) -> None:
    seen = visit(reports["failing"], fragment=fragment)
    assert seen.page.locator("h1").is_visible()
    assert not seen.complaints


def test_the_keyboard_reaches_everything(
    visit: Callable[..., Visit], reports: dict[str, Path]
) -> None:
    page = visit(reports["failing"]).page
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "case-q"
    page.keyboard.type("classify")
    assert page.locator("#case-q").input_value() == "classify"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "case-outcome"
    page.locator(".token-slider").first.focus()
    told = page.locator(".token-told").first
    before = told.inner_text()
    page.keyboard.press("ArrowLeft")
    assert told.inner_text() != before
    assert "no layer differs" in told.inner_text()


def test_findings_are_searched(visit: Callable[..., Visit], reports: dict[str, Path]) -> None:
    page = visit(reports["failing"]).page
    page.locator("#finding-q").fill("smollm2 classify")
    assert page.locator("#finding-count").inner_text() == "1 of 2 findings"
    assert page.locator(".finding:visible h3").inner_text().startswith("SmolLM2")
    page.locator("#finding-q").fill("no such thing")
    assert page.locator(".finding:visible").count() == 0


def test_text_map_and_drawing_point_at_one_token(
    visit: Callable[..., Visit], reports: dict[str, Path]
) -> None:
    page = visit(reports["failing"]).page
    view = page.locator(".prompt-view").first
    told = view.locator(".token-told")
    assert told.inner_text().startswith("token 128 “word128 ”; chunk 2; differs from layer 1 on")
    view.locator(".tk[data-t='130']").click()
    assert told.inner_text().startswith("token 130 “word130 ”; chunk 2; differs from layer 1 on")
    assert view.locator(".tk.at").inner_text() == "word130 "
    lines = view.locator("svg .cursor")
    assert len({line.get_attribute("d") for line in lines.all()} - {"M0 0"}) >= 1
    view.locator("svg.heat-map").click(position={"x": 80, "y": 40})
    assert "no layer differs" in told.inner_text()
    assert view.locator("input.token-slider").input_value() not in ("128", "130")


def test_the_first_difference_is_in_sight_on_a_phone(
    visit: Callable[..., Visit], reports: dict[str, Path]
) -> None:
    page = visit(reports["failing"], width=390).page
    view = page.locator(".prompt-view").first
    for inside, frame in ((".tk.first-token", ".tokens-text"), (".heat-map .first", ".along")):
        within = view.locator(frame).filter(has=page.locator(inside))
        box, mark = within.bounding_box(), view.locator(inside).bounding_box()
        assert box is not None
        assert mark is not None
        assert box["x"] <= mark["x"] <= box["x"] + box["width"], inside
        assert box["y"] <= mark["y"] <= box["y"] + box["height"], inside


def test_hostile_cases_are_drawn_as_text(
    visit: Callable[..., Visit], reports: dict[str, Path], tmp_path: Path
) -> None:
    recorded = failing_run(num_cases=1, checkpoints=CHECKPOINTS[:1])
    nasty = "<img src=x onerror=window.hit=1>"
    records = tuple(
        replace(r, case_id=nasty, case={"prompts": [{"text": nasty}]}, boundaries=(nasty,))
        if r.kind == "case"
        else r
        for r in recorded.records
    )
    run = load_run(replace(recorded, records=records).write(tmp_path / "run"))
    seen = visit(render(run, tmp_path / "report.html"), fragment=f"#case={nasty}")
    assert seen.page.locator("tr.shown th").inner_text() == nasty
    assert seen.page.evaluate("window.hit") is None
    assert not seen.complaints

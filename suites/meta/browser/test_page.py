"""The report in a real browser: nothing fetched, nothing broken, usable by hand and by keyboard.

Passes wrongly if nobody heard what a page asks for. Ruled out by
suites/meta/test_suites_can_fail.py: `the-page-fetches-a-picture`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from suites.meta.browser.visits import DESKTOP, PHONE, RUNS, Visit, chromium, until

pytestmark = pytest.mark.xdist_group("browser")

COMMAND = "parity replay F-tiny-3c9d --run 20261129-194510-4f1a"


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("name", list(RUNS))
def test_it_opens_alone_without_a_complaint_and_fits(
    visit: Callable[..., Visit], reports: dict[str, Path], name: str, width: int
) -> None:
    seen = visit(reports[name], width=width)
    # The worst case for the width is everything unfolded.
    seen.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.requests == [reports[name].as_uri()]
    assert not seen.complaints


def test_hostile_text_runs_nothing(visit: Callable[..., Visit], reports: dict[str, Path]) -> None:
    seen = visit(reports["hostile"])
    for cell in seen.page.locator("a.cell").all():
        cell.hover(force=True)
    assert seen.page.evaluate("window.hit") is None
    assert "<img src=x onerror" in seen.page.locator("main").inner_text()
    assert not seen.complaints


def test_the_policy_stops_code_that_is_not_ours(
    visit: Callable[..., Visit], reports: dict[str, Path]
) -> None:
    seen = visit(reports["clean"])
    seen.page.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.hit = 1';"
        "document.body.append(s);"
    )
    assert seen.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in text for text in seen.complaints)


@pytest.mark.parametrize("way", ["clipboard", "selection"])
def test_the_copy_button_copies_the_command(
    browser: Browser, reports: dict[str, Path], way: str
) -> None:
    context = browser.new_context()
    if way == "clipboard":
        context.grant_permissions(["clipboard-read", "clipboard-write"])
    else:
        context.add_init_script("navigator.clipboard.writeText = () => Promise.reject()")
    page = Visit(context, reports["failing"]).page
    page.locator("#differs button.copy").first.click()
    page.locator("#differs button.copy.done").wait_for()
    assert page.locator("#said").inner_text() == "Copied"
    if way == "clipboard":
        assert page.evaluate("navigator.clipboard.readText()") == COMMAND
    else:
        assert page.evaluate("String(getSelection())").strip() == COMMAND
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_button_is_used(
    visit: Callable[..., Visit], reports: dict[str, Path], scheme: str
) -> None:
    page = visit(reports["clean"], scheme=scheme).page
    ground = "getComputedStyle(document.body).backgroundColor"
    button = page.locator("#theme")
    before = page.evaluate(ground)
    assert button.get_attribute("aria-pressed") == str(scheme == "dark").lower()
    button.click()
    after = page.evaluate(ground)
    assert after != before
    assert button.get_attribute("aria-pressed") == str(scheme == "light").lower()
    # The browser stores the choice in its own time, and a reload that comes too early loses it.
    for _ in range(10):
        page.wait_for_timeout(200)
        page.reload()
        if page.evaluate(ground) == after:
            return
        button.click()
    pytest.fail("the choice is not kept over a reload")


def test_maps_are_one_tab_stop_and_arrows_move_inside(
    visit: Callable[..., Visit], reports: dict[str, Path]
) -> None:
    page = visit(reports["failing"]).page
    stops = page.locator(".map a.cell[tabindex='0']")
    assert stops.count() == page.locator(".map").count() == 3
    stops.first.focus()
    readout = page.locator(".map .readout").first
    assert "the baseline" in readout.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "compile=compiled, chunk=chunked, async=sync, pp=1" in readout.inner_text()
    assert "FAIL" in readout.inner_text()
    page.keyboard.press("Enter")
    until(page, "document.querySelector('tr:target')?.checkVisibility()")
    assert "chunk=chunked" in page.locator("tr:target").inner_text()


def test_a_deep_link_opens_at_its_finding(
    visit: Callable[..., Visit], reports: dict[str, Path]
) -> None:
    seen = visit(reports["failing"])
    anchor = seen.page.locator(".finding").last.get_attribute("id")
    seen.page.goto(f"{reports['failing'].as_uri()}#{anchor}")
    seen.page.reload()
    heading = seen.page.locator(f"#{anchor} h3")
    until(
        seen.page,
        "(id) => { const r = document.querySelector('#' + id).getBoundingClientRect();"
        " return r.top < innerHeight && r.bottom > 0; }",
        anchor,
    )
    assert heading.is_visible()


def test_links_unfold_also_where_the_browser_does_not(
    visit: Callable[..., Visit], reports: dict[str, Path]
) -> None:
    page = visit(reports["failing"]).page
    row = page.locator("#cell-0-3-row")
    assert not row.is_visible()
    # Chromium unfolds on navigation; replacing the address is no navigation, so only we can.
    page.evaluate("history.replaceState(null, '', '#cell-0-3-row')")
    assert not row.is_visible()
    page.evaluate("dispatchEvent(new Event('hashchange'))")
    assert row.is_visible()


def test_paper_shows_what_is_folded(visit: Callable[..., Visit], reports: dict[str, Path]) -> None:
    page = visit(reports["failing"]).page
    folded = "document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(folded)
    assert before > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(folded) == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(folded) == before


def test_it_reads_without_scripts(browser: Browser, reports: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports["failing"].as_uri())
    assert page.locator("h1").inner_text() == "The answers depend on how it is run"
    assert not page.locator("button").first.is_visible(), "a button that does nothing is not shown"
    context.close()


def test_a_missing_browser_fails_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(pytest.fail.Exception, match="playwright install chromium"):
        chromium("nowhere")

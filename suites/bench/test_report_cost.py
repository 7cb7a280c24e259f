"""What a report of 10,000 cases costs: its size, the time to write, to show and to filter it.

A filter is timed from the key to the finished layout of its first screen, twice: by the wall clock,
which other work on the machine lengthens, and by the processor time of the page's own thread.

Passes wrongly if a filter found nothing or everything, or the page held fewer cases. Ruled out by
`test_a_report_of_ten_thousand_cases`, which reads what each query found, and
suites/meta/browser/test_search.py::test_ten_thousand_cases_are_searched_and_filtered.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import CDPSession, Page, sync_playwright

from reports.html import render
from suites.figures import show
from suites.meta.browser.visits import DESKTOP, FLAGS, chromium, until
from suites.unit.reports.fixtures import many_cases

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

CASES = 10_000
REPEATS = 5
QUERIES = ("prompt 4217", "one token", "p", "block edge fence", "")
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
FILTER = """(text) => {
  const box = document.getElementById('case-q');
  const began = performance.now();
  box.value = text;
  box.dispatchEvent(new Event('input'));
  document.getElementById('cases').getBoundingClientRect();
  return performance.now() - began;
}"""
WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")


def work(session: CDPSession) -> float:
    """Seconds of processor time that the page's thread has spent on scripts, styles and layout."""
    told = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return float(sum(told[name] for name in WORK))


def filters(page: Page) -> tuple[list[float], list[float], list[str]]:
    """Milliseconds of each query: by the wall clock, and of the thread itself; what it found."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    walls, works, found = [], [], []
    for query in QUERIES:
        before = work(session)
        walls.append(page.evaluate(FILTER, query))
        works.append((work(session) - before) * 1e3)
        found.append(page.locator("#case-count").inner_text())
    return walls, works, found


def test_a_report_of_ten_thousand_cases(tmp_path: Path) -> None:
    run = many_cases(CASES)
    began = time.perf_counter()
    path = render(run, tmp_path / "report.html")
    written = time.perf_counter() - began
    paints: list[float] = []
    walls: list[float] = []
    works: list[float] = []
    with sync_playwright() as playwright:
        path_of_browser = chromium(playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=path_of_browser, args=FLAGS)
        for _ in range(REPEATS):
            page = browser.new_page(viewport={"width": DESKTOP, "height": 900})
            page.goto(path.as_uri())
            until(page, PAINT)
            paints.append(page.evaluate(PAINT))
            wall, worked, found = filters(page)
            assert found[0] == f"1 of {CASES:,} cases"
            assert found[-1].startswith(f"{CASES:,} of {CASES:,} cases")
            walls += wall
            works += worked
            page.close()
        browser.close()
    machine = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    show(
        f"report of {CASES:,} cases, median of {REPEATS}; {machine}",
        ("size, MB", "to write, s", "first paint, ms", "slowest paint, ms"),
        [(path.stat().st_size / 1e6, written, median(paints), max(paints))],
    )
    show(
        f"filtering it, {len(walls)} queries; targets: 1 s to the first paint, 100 ms a filter",
        ("", "median, ms", "slowest, ms"),
        [
            ("wall clock", median(walls), max(walls)),
            ("processor time of the page", median(works), max(works)),
        ],
    )

"""What a report of 10,000 cases costs: its size, the time to write, to show and to filter it."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import sync_playwright

from reports.html import render
from suites.figures import show
from suites.meta.browser.visits import DESKTOP, FLAGS, chromium
from suites.unit.reports.fixtures import many_cases

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

CASES = 10_000
REPEATS = 5
QUERIES = ("prompt 4217", "one token", "p", "block edge fence", "")
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FILTER = """(text) => {
  const box = document.getElementById('case-q');
  const began = performance.now();
  box.value = text;
  box.dispatchEvent(new Event('input'));
  document.getElementById('cases').getBoundingClientRect();
  return performance.now() - began;
}"""


def test_a_report_of_ten_thousand_cases(tmp_path: Path) -> None:
    run = many_cases(CASES)
    began = time.perf_counter()
    path = render(run, tmp_path / "report.html")
    written = time.perf_counter() - began
    paints, filters = [], []
    with sync_playwright() as playwright:
        path_of_browser = chromium(playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=path_of_browser, args=FLAGS)
        for _ in range(REPEATS):
            page = browser.new_page(viewport={"width": DESKTOP, "height": 900})
            page.goto(path.as_uri())
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            paints.append(page.evaluate(PAINT))
            filters += [page.evaluate(FILTER, query) for query in QUERIES]
            page.close()
        browser.close()
    show(
        f"report of {CASES:,} cases, median of {REPEATS}",
        ("size, MB", "to write, s", "first paint, ms", "a filter, ms", "slowest filter, ms"),
        [(path.stat().st_size / 1e6, written, median(paints), median(filters), max(filters))],
    )

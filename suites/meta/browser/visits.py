"""One open report, and what the browser said while it was open.

Needs a Chromium, which `make test` brings where it can; else these tests fail and say what to do.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from suites.unit.reports.fixtures import every_kind

RUNS = every_kind(clean=2, failing=2)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = 1280, 390


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def chromium(own: str) -> str:
    """Path of a browser on PATH, else Playwright's `own`; fails with the remedy without either."""
    found = [path for name in BROWSERS if (path := shutil.which(name)) is not None]
    if not found and not Path(own).exists():
        pytest.fail(
            "no Chromium: the report cannot be checked in a browser. Install one: apt-get install "
            "-y chromium (as root), or .venv/bin/playwright install chromium",
            pytrace=False,
        )
    return (*found, own)[0]


TRIES = 200
BETWEEN_TRIES_MS = 50


def until(page: Page, expression: str, arg: object = None) -> None:
    """Wait until `expression` is true in the page; fails with what it said last.

    Not Playwright's own wait: that one looks again from inside the page, where the report's policy
    lets no text become code.
    """
    said = None
    for _ in range(TRIES):
        said = page.evaluate(expression, arg)
        if said:
            return
        page.wait_for_timeout(BETWEEN_TRIES_MS)
    pytest.fail(f"never true: {expression}; last: {said!r}")


class Visit:
    """Owns: one open report and what the browser said while it was open."""

    def __init__(self, context: BrowserContext, path: Path, fragment: str = "") -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri() + fragment)

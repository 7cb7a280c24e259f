"""One open report, and what the browser said while it was open.

Needs Debian's `chromium` package; without it the tests here fail and say how to install it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from suites.unit.reports.fixtures import (
    clean_run,
    empty_run,
    failing_run,
    hostile_run,
    interrupted_run,
)
from suites.unit.reports.parts import RecordedRun

RUNS: dict[str, Callable[[], RecordedRun]] = {
    "clean": lambda: clean_run(num_cases=2),
    "failing": lambda: failing_run(num_cases=2),
    "interrupted": interrupted_run,
    "empty": empty_run,
    "hostile": hostile_run,
}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = 1280, 390


def chromium() -> str:
    """Path of the browser; a test that needs it fails with the remedy where there is none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail(
            "no chromium on PATH: the report cannot be checked in a browser. Install it as root: "
            "apt-get update && apt-get install -y chromium",
            pytrace=False,
        )
    return path


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

"""One browser for all the tests here, and the reports they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from reports.html import render
from reports.load import load_run
from reports.view.changes import changes
from suites.meta.browser.visits import DESKTOP, FLAGS, RUNS, Visit, chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = chromium(playwright.chromium.executable_path)
        started = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name -> its page. `failing` is compared with `clean`."""
    folder = tmp_path_factory.mktemp("reports")
    runs = {name: load_run(make().write(folder / name)) for name, make in RUNS.items()}
    compared = {"failing": changes(runs["failing"], runs["clean"])}
    return {
        name: render(run, folder / f"{name}.html", compared.get(name)) for name, run in runs.items()
    }


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    contexts: list[BrowserContext] = []

    def opened(
        path: Path, *, width: int = DESKTOP, scheme: str = "light", fragment: str = ""
    ) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        contexts.append(context)
        return Visit(context, path, fragment)

    yield opened
    for context in contexts:
        context.close()

"""Makes the pictures in docs/images from real runs: `make screenshots`.

A clean run, a run with a planted bug, and the second compared with the first. Runs that are already
there can be named, so that only the pictures are made again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from reports.html import render
from reports.load import load_run
from reports.view.changes import changes

IMAGES = Path(__file__).parent / "images"
PLANT = "stage-skips-poststep"
WIDTH, HEIGHT = 1120, 900
MARGIN = 20
PATIENCE_MS = 180_000
"""A busy machine draws slowly."""
MAX_HEIGHT = 2400
"""Pixels of a picture; what is further down is said in words."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="screenshots.py", description=__doc__.split("\n")[0])
    parser.add_argument("--clean", type=Path, help="folder of a run without a fault")
    parser.add_argument("--failing", type=Path, help="folder of a run with one")
    parser.add_argument("-o", "--output", type=Path, default=IMAGES, help="default: %(default)s")
    options = parser.parse_args(arguments)
    home = Path(os.environ.get("PARITY_HOME", ".parity")) / "runs"
    clean = options.clean or _run(home)
    failing = options.failing or _run(home, "--plant", PLANT)
    for path in take(clean, failing, options.output):
        sys.stdout.write(f"{path}\n")
    return 0


def _run(home: Path, *arguments: str) -> Path:
    """Run the small profile and return the folder it made; exit codes are the point, not errors."""
    before = set(home.glob("*"))
    subprocess.run(
        [sys.executable, "-m", "harness", "run", "--profile", "smoke", *arguments], check=False
    )
    (made,) = set(home.glob("*")) - before
    return made


def take(clean: Path, failing: Path, output: Path) -> list[Path]:
    """The pictures of two recorded runs."""
    output.mkdir(parents=True, exist_ok=True)
    good, bad = load_run(clean), load_run(failing)
    pages = {
        "clean": render(good, clean / "report.html"),
        "failing": render(bad, failing / "report.html", changes(bad, good)),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_installed(), args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(pages["clean"].resolve().as_uri())
        shots = [_whole(page, output / "clean.png")]
        page.goto(pages["failing"].resolve().as_uri())
        shots.append(_part(page, ".finding", output / "failing.png", down_to=".finding .truth"))
        shots.append(_part(page, ".prompt-view", output / "tokens.png"))
        shots.append(_part(page, "#changed", output / "regression.png"))
        browser.close()
    return shots


def _installed() -> str | None:
    """A browser on PATH; None for the one that Playwright brought."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, found), None)


def _whole(page: Page, path: Path) -> Path:
    """The first screen, down to the end of the first map."""
    box = page.locator(".map svg").first.bounding_box()
    height = HEIGHT if box is None else box["y"] + box["height"] + 30
    return _shot(page, path, 0, 0, WIDTH, height)


def _part(page: Page, selector: str, path: Path, *, down_to: str = "") -> Path:
    """The first `selector`, down to the end of the first `down_to` in it."""
    box, last = (page.locator(s).first.bounding_box() for s in (selector, down_to or selector))
    if box is None or last is None:
        raise ValueError(f"{selector} {down_to} is not on the page")
    height = last["y"] + last["height"] - box["y"] + (MARGIN if down_to else 0)
    return _shot(page, path, box["x"], box["y"], box["width"], height)


def _shot(page: Page, path: Path, x: float, y: float, width: float, height: float) -> Path:
    clip = {"x": x, "y": y, "width": width, "height": min(height, MAX_HEIGHT)}
    page.screenshot(path=path, clip=clip, full_page=True)  # type: ignore[arg-type]
    return path


if __name__ == "__main__":
    sys.exit(main())

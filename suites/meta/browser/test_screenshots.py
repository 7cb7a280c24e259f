"""`make screenshots`: pictures of what they are called after, from runs that are named.

Passes wrongly if a picture of the right size were blank, or of another part of the report. Ruled
out by `test_a_blank_picture_and_another_one_are_told`.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page

from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import CHECKPOINTS

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).resolve().parents[3]
STYLE = (ROOT / "reports/html/templates/report.css").read_text(encoding="utf-8")
PIXELS = """async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const { data } = pen.getImageData(0, 0, image.width, image.height);
  const seen = {};
  for (const pixel of new Uint32Array(data.buffer)) seen[pixel] = (seen[pixel] ?? 0) + 1;
  return { width: image.width, height: image.height, seen };
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG as a browser reads it."""

    width: int
    height: int
    pixels: Mapping[str, int] = field(repr=False)
    """Hexadecimal colour -> how many pixels have it."""

    def share(self, name: str) -> float:
        """How much of it has a colour that the style sheet calls `name`, by day."""
        found = re.search(rf"--{name}: light-dark\(#(\w{{6}}),", STYLE)
        assert found, name
        return self.pixels.get(found[1], 0) / (self.width * self.height)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What tells one picture from the others."""

    has: str
    """A colour of the style sheet,"""
    least: float
    """and the share of the picture that has it;"""
    lacks: str
    """one that next to nothing has."""


LOOKS: Final = {
    "clean": Look(has="pass", least=0.02, lacks="fail-ink"),
    "failing": Look(has="fail-ink", least=0.003, lacks="h6"),
    "tokens": Look(has="h6", least=0.005, lacks="pass"),
    "regression": Look(has="fail", least=0.0005, lacks="pass"),
}
NEXT_TO_NOTHING = 2e-4


def misdrawn(picture: Picture, look: Look) -> str | None:
    """Why a picture is not one of that look; None: it is."""
    if (share := picture.share(look.has)) < look.least:
        return f"expected at least {look.least:.2%} of {look.has}, got {share:.2%}"
    if (share := picture.share(look.lacks)) > NEXT_TO_NOTHING:
        return f"expected next to nothing of {look.lacks}, got {share:.2%}"
    return None


def seen(page: Page, png: bytes) -> Picture:
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    said = page.evaluate(PIXELS, url)
    pixels = {int(p).to_bytes(4, "little")[:3].hex(): n for p, n in said["seen"].items()}
    return Picture(width=said["width"], height=said["height"], pixels=pixels)


@pytest.fixture(scope="module")
def blank(browser: Browser) -> Iterator[Page]:
    """A page with nothing on it, which lets pictures in that a report does not."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture(scope="module")
def pictures(blank: Page, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Picture]:
    """Name -> picture, in the order in which the command says that it made them."""
    folder = tmp_path_factory.mktemp("screenshots")
    clean = clean_run(num_cases=2).write(folder / "clean")
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    later = replace(recorded, manifest=replace(recorded.manifest, run_id="later"))
    failing = later.write(folder / "failing")
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "docs/screenshots.py"),
            *("--clean", str(clean), "--failing", str(failing), "-o", str(folder / "images")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = [Path(line) for line in done.stdout.splitlines()]
    assert {path.suffix for path in made} == {".png"}
    return {path.stem: seen(blank, path.read_bytes()) for path in made}


def test_every_picture_shows_what_it_is_called_after(pictures: dict[str, Picture]) -> None:
    assert [*pictures] == ["clean", "failing", "tokens", "regression"]
    for name, picture in pictures.items():
        assert 850 <= picture.width <= 1120
        assert 300 <= picture.height <= 2400
        assert misdrawn(picture, LOOKS[name]) is None, name


def test_a_blank_picture_and_another_one_are_told(
    pictures: dict[str, Picture], blank: Page
) -> None:
    nothing = seen(blank, blank.screenshot())
    for name, look in LOOKS.items():
        assert misdrawn(nothing, look)
        for other in LOOKS.keys() - {name}:
            assert misdrawn(pictures[other], look), (name, other)

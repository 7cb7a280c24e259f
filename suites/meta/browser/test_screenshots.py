"""`make screenshots`: pictures of what they are called after, from runs that are named."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import CHECKPOINTS

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).resolve().parents[3]


def size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_every_picture(browser: Browser, tmp_path: Path) -> None:
    clean = clean_run(num_cases=2).write(tmp_path / "clean")
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    later = replace(recorded, manifest=replace(recorded.manifest, run_id="later"))
    failing = later.write(tmp_path / "failing")
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "docs/screenshots.py"),
            *("--clean", str(clean), "--failing", str(failing), "-o", str(tmp_path / "images")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = [Path(line) for line in done.stdout.splitlines()]
    assert [path.name for path in made] == [
        f"{n}.png" for n in ("clean", "failing", "tokens", "regression")
    ]
    for path in made:
        width, height = size(path)
        assert 850 <= width <= 1120
        assert 300 <= height <= 2400

"""`--help`, completion and the reference: what a newcomer reads first.

Passes wrongly if something else was shown in the place of words that a command lacks. Ruled out by
suites/meta/test_suites_can_fail.py: `a-command-is-not-explained`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

import harness.record
from harness.cli.app import app
from suites.contract.command import parity

ROOT = Path(__file__).resolve().parents[2]
GROUP: Any = typer.main.get_command(app)


def test_the_first_page_has_what_a_manual_has(capsys: pytest.CaptureFixture[str]) -> None:
    answer = parity(capsys, "--help")
    assert answer.code == 0
    for told in ("Exit codes", "PARITY_HOME", "PARITY_CACHE", "records.jsonl", "First steps"):
        assert told in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100
    for command in GROUP.commands:
        assert re.search(rf"^  {command} ", answer.out, re.MULTILINE), command


@pytest.mark.parametrize("command", sorted(GROUP.commands))
def test_every_command_and_option_is_explained(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    answer = parity(capsys, command, "--help")
    assert answer.code == 0
    chosen = GROUP.commands[command]
    assert (chosen.help or "").strip()[:1].isupper(), "says what it does"
    for parameter in chosen.params:
        assert parameter.help, f"{command}: {parameter.name} is not explained"


def test_completion_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness"],
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "_PARITY_COMPLETE": "complete_bash",
            "COMP_WORDS": "parity ga",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["gate"], done.stderr


@pytest.mark.nightly
@pytest.mark.timeout(900)  # every module is loaded, torch and its compiler with them
def test_the_reference_is_built_from_docstrings(tmp_path: Path) -> None:
    """As `make reference` does; what a page shows it has with it."""
    done = subprocess.run(
        [sys.executable, "docs/reference.py", "-o", str(tmp_path), "--only", "harness.record"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    text = (tmp_path / "harness" / "record.html").read_text(encoding="utf-8")
    for name in harness.record.__all__:
        assert f'id="{name}"' in text, name
    assert "Failures that share a signature, shrunk, attributed and reproducible." in text
    written = {page.stem for page in (tmp_path / "harness" / "record").glob("*.html")}
    there = {path.stem for path in (ROOT / "harness" / "record").glob("[!_]*.py")}
    assert written == there, "a page for each module, named in __all__ or not"
    loaded = re.compile(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"')
    assert not [x for page in tmp_path.rglob("*.html") for x in loaded.findall(page.read_text())]

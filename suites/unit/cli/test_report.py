"""`parity report` writes a recorded run again and never changes what it says.

Passes wrongly if there was one run only, or the newest was also the oldest by the clock. Ruled out
by suites/meta/test_suites_can_fail.py: `the-oldest-run-is-taken`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.cli import main
from suites.unit.reports.fixtures import clean_run, failing_run, interrupted_run


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two runs, `newer` the last one."""
    monkeypatch.setenv("PARITY_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "runs"
    for age, (name, run) in enumerate({"newer": failing_run(), "older": clean_run(1)}.items()):
        run.write(folder / name)
        os.utime(folder / name / "run.json", (2_000_000_000 - age, 2_000_000_000 - age))
    return folder


def test_the_newest_run_is_reported_and_its_verdict_is_no_exit_code(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report"]) == 0
    told = capsys.readouterr().out
    page = runs / "newer" / "report.html"
    assert told.splitlines()[-1] == f"report: {page}"
    assert "FAIL" in told
    first = page.read_bytes()
    assert main(["report", "newer"]) == 0
    assert page.read_bytes() == first
    assert not (runs / "older" / "report.html").exists()


@pytest.mark.parametrize("name", ["older", "path"])
def test_a_run_is_named_by_id_or_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    named = str(runs / "older") if name == "path" else name
    target = tmp_path / "elsewhere" / "page.html"
    assert main(["report", named, "-o", str(target)]) == 0
    assert "Same answers" in capsys.readouterr().out
    assert "Same answers" in target.read_text()
    assert not (runs / "older" / "report.html").exists()


def test_a_program_reads_the_verdict(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "newer", "--json"]) == 0
    failed = json.loads(capsys.readouterr().out)
    assert (failed["safety"], failed["exit_code"], failed["interrupted"]) == ("unsafe", 1, False)
    assert failed["counts"]["FAIL"] > 0
    assert failed["findings"]
    assert failed["report"] == str(runs / "newer" / "report.html")
    assert main(["report", "older", "--json"]) == 0
    passed = json.loads(capsys.readouterr().out)
    assert (passed["safety"], passed["exit_code"]) == ("safe", 0)
    assert passed["compared"] > 0


def test_an_interrupted_run_is_no_verdict(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    interrupted_run().write(runs / "killed")
    assert main(["report", "killed", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["interrupted"] is True
    assert document["safety"] == "unproven"
    assert document["exit_code"] is None


def test_a_target_that_cannot_be_written_is_named(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "older", "-o", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_an_unknown_run_is_told_those_there_are(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "oldest"]) == 2
    assert capsys.readouterr().err == f"parity: no run 'oldest'; runs under {runs}: newer, older\n"

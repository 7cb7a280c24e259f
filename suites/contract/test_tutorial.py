"""The tutorial's commands that read recorded runs say what the tutorial says they say.

Passes wrongly if the two runs differed in nothing that is told, or in more than the plant. Ruled
out by suites/meta/test_suites_can_fail.py: `the-plant-is-no-difference`.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from suites.contract.command import Answer, parity
from suites.meta.test_documents import command_lines
from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import CHECKPOINTS

ROOT = Path(__file__).resolve().parents[2]
CLEAN, FAILING = "20261130-101500-ab12", "20261130-102000-cd34"
LINES = command_lines((ROOT / "docs/tutorial.md").read_text())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The two runs that the tutorial makes, and its working folder."""
    monkeypatch.setenv("PARITY_HOME", str(tmp_path / ".parity"))
    monkeypatch.chdir(ROOT)
    kept = CHECKPOINTS[:1]
    runs = {CLEAN: clean_run(num_cases=3), FAILING: failing_run(num_cases=3, checkpoints=kept)}
    for minute, (name, run) in enumerate(runs.items()):
        records = [r for r in run.records if getattr(r, "checkpoint", kept[0].name) == kept[0].name]
        manifest = replace(
            run.manifest,
            run_id=name,
            profile="smoke",
            created=f"2026-11-30T10:{minute:02}:00Z",
            checkpoints=kept,
        )
        replace(run, manifest=manifest, records=tuple(records)).write(
            tmp_path / ".parity" / "runs" / name
        )
    return tmp_path / ".parity" / "runs"


def run(capsys: pytest.CaptureFixture[str], verb: str) -> list[Answer]:
    """What each of the tutorial's lines with this command says."""
    lines = [line for line in LINES if line.split()[0] == verb]
    assert lines, f"the tutorial has no `parity {verb}`"
    return [parity(capsys, *shlex.split(line)) for line in lines]


def test_the_difference_is_new_and_the_plant_is_what_differs(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (answer,) = run(capsys, "diff")
    assert answer.code == 1
    assert "✕ new" in answer.out
    assert answer.out.count("->") == 1, "the only thing that differs"
    assert "run: planted faults: none -> stale-input-buffer" in answer.out


def test_the_report_answers_what_changed(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    (answer,) = run(capsys, "report")
    assert answer.code == 0
    page = (home / FAILING / "report.html").read_text()
    assert "Faults were planted in this run on purpose" in page
    assert "fails now and did not in the baseline run" in page


def test_the_gate_closes_for_the_reasons_given(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    (answer,) = run(capsys, "gate")
    assert answer.code == 1
    for rule in ("plants", "profile", "new findings"):
        assert f"✕ {rule}:" in answer.out

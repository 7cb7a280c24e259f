"""The terminal summary, and the module's own command line.

Passes wrongly if the hostile run held no text that a terminal obeys. Ruled out by
suites/meta/test_suites_can_fail.py: `a-terminal-obeys-recorded-text`.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from reports.__main__ import main
from reports.fates import FAILING, Fate
from reports.load import load_run
from reports.terminal import print_summary
from reports.view.changes import Change
from reports.view.standing import STANDINGS
from suites.unit.reports.fixtures import (
    clean_run,
    empty_run,
    failing_run,
    hostile_run,
    interrupted_run,
)
from suites.unit.reports.parts import RecordedRun


def printed(recorded: RecordedRun, folder: Path, *, width: int = 100) -> str:
    out = io.StringIO()
    print_summary(load_run(recorded.write(folder)), Console(file=out, width=width))
    return out.getvalue()


def test_a_clean_run(tmp_path: Path) -> None:
    text = printed(clean_run(num_cases=2), tmp_path)
    assert "✓ Same answers in every way it was run" in text
    assert text.count("16 of 16 cells, 32 of 32 edges judged") == 2
    assert text.count("⊘ 8 cells refused: chunked_prefill=True") == 2
    assert "seed 20261129; again: parity run --profile pr --seed 20261129" in text


@pytest.mark.parametrize("width", [40, 100])
def test_a_failing_run_can_be_reproduced_from_its_summary(tmp_path: Path, width: int) -> None:
    text = printed(failing_run(num_cases=2), tmp_path, width=width)
    assert "See it again: parity replay F-tiny-3c9d --run 20261129-194510-4f1a\n" in text
    flat = " ".join(text.split())
    assert "Fails when chunk=chunked AND compile=compiled." in flat
    assert "planted on purpose: stale-input-buffer" in flat


def test_interrupted_and_empty_runs_say_so(tmp_path: Path) -> None:
    assert "This run was interrupted: no end record." in printed(interrupted_run(), tmp_path / "i")
    assert "No verdict: nothing was proved" in printed(empty_run(), tmp_path / "e")


def test_hostile_text_moves_no_cursor_and_reads_as_no_markup(tmp_path: Path) -> None:
    text = printed(hostile_run(), tmp_path, width=400)
    assert not set("\x00\x07\x08\x1b\x9b\u202e") & set(text)
    assert "[red]bold[/red]" in text
    assert "\\u{1b}" in text


def test_the_command_writes_the_report_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = empty_run().write(tmp_path / "run")
    assert main([str(folder)]) == 0
    assert (folder / "report.html").exists()
    assert main([str(folder), "-o", str(tmp_path / "other.html")]) == 0
    assert (tmp_path / "other.html").exists()
    assert f"report: {tmp_path / 'other.html'}" in capsys.readouterr().out


def test_a_folder_that_is_no_run_is_an_error_without_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "holds no run.json: not a run folder" in error
    assert "Traceback" not in error


def test_every_standing_has_one_look() -> None:
    """A word that stands for a change and for a fate looks the same; none is left out."""
    words = {str(word) for word in (*Change, *Fate)}
    assert {str(word) for word in STANDINGS} == words
    assert all(STANDINGS[word].glyph for word in (*Change, *Fate))
    assert {STANDINGS[w].css for w in FAILING} == {"fail", "error"}
    assert not {STANDINGS[w].css for w in set(Fate) - set(FAILING)} & {"fail", "error"}

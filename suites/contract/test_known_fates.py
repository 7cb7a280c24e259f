"""What became of everything known, from records alone: told everywhere in the same words.

Passes wrongly if a known finding were told to fail still, whatever its replay did, or the report
left out what was known. Ruled out by suites/meta/test_suites_can_fail.py:
`every-known-finding-still-fails`, `the-report-has-no-section-of-what-was-known`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from harness.record import ReplayRecord, Source
from suites.contract.command import parity
from suites.contract.known import FOUND, GONE, LAST, RULES, gate, working_folder
from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import CHECKPOINTS, RecordedRun


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return working_folder(tmp_path, monkeypatch)


def replayed(
    *, fails: bool | None, expires: date = LAST, source: Source = Source.LEDGER, then: bool = True
) -> ReplayRecord:
    ledger = source is Source.LEDGER
    return ReplayRecord(
        source=source,
        name="F-1" if ledger else "c0ffee",
        checkpoint="tiny-qwen3",
        title="embed differs when pp=2",
        failed_then=then,
        fails_now=fails,
        reproduce="parity replay F-1 --rules parity.toml" if ledger else "",
        entry_id="F-1" if ledger else "",
        owner="ada" if ledger else "",
        link="https://tracker.example/1" if ledger else "",
        expires=expires.isoformat() if ledger else "",
    )


def with_replay(recorded: RecordedRun, record: ReplayRecord) -> RecordedRun:
    """The run, begun today, that replayed this first."""
    manifest = replace(recorded.manifest, created=datetime.now(UTC).isoformat(timespec="seconds"))
    return RecordedRun(manifest=manifest, records=(record, *recorded.records))


@pytest.mark.parametrize(
    ("record", "fate", "broken"),
    [
        (replayed(fails=True), "still failing", set()),
        (replayed(fails=True, expires=GONE), "expired", {"expired findings"}),
        (replayed(fails=False), "fixed", {"fixed findings that are still in the ledger"}),
        (replayed(fails=None), "not replayed", {"known findings that were not found"}),
    ],
)
def test_the_fate_of_a_known_finding_is_told_everywhere(
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    record: ReplayRecord,
    fate: str,
    broken: set[str],
) -> None:
    """With drawn cases that all agree: what is known is a rule of its own."""
    run = with_replay(clean_run(num_cases=2), record).write(folder / "run")
    entry = f"[[known]]\nid = 'F-1'\nowner = 'ada'\nlink = 'x'\nexpires = {record.expires}\n"
    (folder / "parity.toml").write_text(RULES + entry)
    assert gate(capsys, str(run))[1:] == (broken, {"F-1": fate})
    assert f"{fate} F-1 (ledger)" in parity(capsys, "gate", str(run)).told
    told = parity(capsys, "report", str(run), "--format", "html,markdown").told
    assert f"Known before, replayed first: 1 {fate}" in told
    assert f"{fate} F-1: embed differs when pp=2" in told
    page, summary = ((run / name).read_text() for name in ("report.html", "summary.md"))
    assert f"### Known before, replayed first: 1 {fate}" in summary
    _, begins, section = page.partition('<section id="known"')
    assert begins, "the report has no section of what was known"
    assert f"</span> {fate}</abbr>" in section.partition("</section>")[0]
    assert '<a href="#known">' in page
    (folder / "parity.toml").write_text(RULES)  # taken out since: no rule speaks of it
    assert gate(capsys, str(run))[1:] == (set(), {})


@pytest.mark.parametrize(
    ("then", "fails", "fate"),
    [
        (True, True, "still failing"),
        (False, True, "new"),
        (True, False, "fixed"),
        (False, False, "passes"),
        (True, None, "not replayed"),
    ],
)
def test_the_fate_of_a_case_of_the_corpus(
    capsys: pytest.CaptureFixture[str], folder: Path, *, then: bool, fails: bool | None, fate: str
) -> None:
    record = replayed(fails=fails, source=Source.CORPUS, then=then)
    run = with_replay(clean_run(num_cases=2), record).write(folder / "run")
    assert gate(capsys, str(run))[1:] == (set(), {"c0ffee": fate})
    assert f"Known before, replayed first: 1 {fate}" in parity(capsys, "report", str(run)).told


def test_a_fault_may_outlive_its_smallest_case(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """Its own case passes and the run's cases find it: that is no fix."""
    record = replace(replayed(fails=False), name=FOUND, entry_id=FOUND)
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    run = with_replay(recorded, record).write(folder / "run")
    (folder / "parity.toml").write_text(
        f"{RULES}[[known]]\nid = '{FOUND}'\nowner = 'ada'\nlink = 'x'\nexpires = {LAST}\n"
    )
    assert gate(capsys, str(run))[1:] == (set(), {FOUND: "still failing"})
    assert "cases of this run show it" in parity(capsys, "report", str(run)).told


def test_a_finding_that_no_entry_covers_is_new(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    run = with_replay(recorded, replayed(fails=True)).write(folder / "run")
    told = parity(capsys, "report", str(run)).told
    assert "Known before, replayed first: 1 new, 1 still failing" in told


def test_a_replay_that_fails_is_told_in_the_verdict(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    recorded = with_replay(clean_run(num_cases=2), replayed(fails=True))
    records = tuple(replace(r, exit_code=1) if r.kind == "end" else r for r in recorded.records)
    run = replace(recorded, records=records).write(folder / "run")
    told = json.loads(parity(capsys, "report", str(run), "--json").out)
    assert (told["safety"], told["exit_code"]) == ("unsafe", 1)
    assert told["known"] == [{"name": "F-1", "now": "still failing"}]
    assert "1 known finding still fails." in parity(capsys, "report", str(run)).told

"""Loading: indexed records, killed runs, and folders that are no run.

Passes wrongly if no run that is read here lacked its end record. Ruled out by
suites/meta/test_suites_can_fail.py: `a-killed-run-loads-as-whole`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.record import EndRecord, PairRecord, RecordError
from reports.load import load_run
from suites.unit.reports.fixtures import (
    clean_run,
    empty_run,
    failing_run,
    interrupted_run,
    plus,
)


def test_a_finished_run_is_indexed_and_complete(tmp_path: Path) -> None:
    recorded = clean_run(num_cases=2)
    run = load_run(recorded.write(tmp_path))
    assert run.manifest == recorded.manifest
    assert run.pairs == tuple(r for r in recorded.records if isinstance(r, PairRecord))
    assert run.end == next(r for r in recorded.records if isinstance(r, EndRecord))
    assert not run.interrupted
    assert all(case.checkpoint == checkpoint for (checkpoint, _), case in run.cases.items())
    assert all(run.executions[i].execution_id == i for i in run.executions)


def test_findings_survive_the_file(tmp_path: Path) -> None:
    recorded = failing_run(num_cases=2)
    run = load_run(recorded.write(tmp_path))
    assert run.findings
    assert all(finding in recorded.records for finding in run.findings)


def test_notices_of_manifest_and_records_are_joined(tmp_path: Path) -> None:
    run = load_run(plus(empty_run(), manifest_notice="first", notice="second").write(tmp_path))
    assert run.notices == ("first", "second")


def test_a_killed_run_loads_as_far_as_it_got(tmp_path: Path) -> None:
    recorded = interrupted_run()
    lines = recorded.write(tmp_path) / "records.jsonl"
    whole = lines.read_bytes()
    lines.write_bytes(whole[:-40])
    run = load_run(tmp_path)
    assert run.interrupted
    torn = isinstance(recorded.records[-1], PairRecord)
    expected = sum(isinstance(r, PairRecord) for r in recorded.records) - torn
    assert len(run.pairs) == expected > 0


@pytest.mark.parametrize("missing", ["run.json", "records.jsonl"])
def test_a_folder_that_is_no_run_is_named(tmp_path: Path, missing: str) -> None:
    (empty_run().write(tmp_path) / missing).unlink()
    with pytest.raises(RecordError, match=missing):
        load_run(tmp_path)

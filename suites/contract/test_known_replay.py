"""What is known is replayed before any drawn case, on real engines.

The same ledger meets an engine with and without the fault.

Passes wrongly if what is known were replayed behind the drawn cases. Ruled out by
suites/meta/test_suites_can_fail.py: `what-is-known-waits-for-the-drawn-cases`.
"""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

from harness.campaign.corpus import KeptCase, add, read_corpus
from harness.case import case_from_json
from harness.record import CaseRecord, FindingRecord, ReplayRecord, read_records
from reports.load import load_run
from reports.redaction import redacted
from suites.contract.command import parity
from suites.contract.known import ASKED, GONE, LAST, OWNED, gate, working_folder

PLANT = ("--plant", "stage-skips-poststep")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return working_folder(tmp_path, monkeypatch)


def edit_day(day: date) -> None:
    """As the owner's calendar would: the ledger's last day is another one."""
    rules = Path("parity.toml")
    rules.write_text(re.sub(r"expires = \S+", f"expires = {day}", rules.read_text()))


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_known_finding_is_replayed_first_both_ways_round(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert parity(capfd, *ASKED, *PLANT).code == 1
    first = max((folder / "home" / "runs").iterdir())
    (finding, *_) = (r for r in read_records(first) if isinstance(r, FindingRecord))
    name = finding.finding_id
    assert parity(capfd, "known", "add", name, *OWNED).code == 0
    assert "stage" not in Path(f"parity.known/{name}.json").read_text(), "no fault is named"

    again = parity(capfd, *ASKED, *PLANT, "--seed", "7", "--redact")  # comes back, other cases
    assert again.code == 1
    assert f"known {name}: still failing" in again.told
    newest = max((folder / "home" / "runs").iterdir())
    records = list(read_records(newest))
    kinds = [type(record) for record in records]
    assert kinds.index(ReplayRecord) < kinds.index(CaseRecord), "before any drawn case"
    assert gate(capfd)[2][name] == "still failing"
    assert "expired findings" not in gate(capfd)[1]
    tokens = json.dumps(finding.case["prompts"][0]["tokens"])
    written = (newest / "records.jsonl").read_text() + (newest / "report.html").read_text()
    assert tokens in (first / "records.jsonl").read_text()
    assert tokens not in written, "the kept case's prompts are in no record and no report"

    edit_day(GONE)
    assert gate(capfd)[2][name] == "expired"
    assert "expired findings" in gate(capfd)[1]
    edit_day(LAST)

    clean = parity(capfd, *ASKED)  # fixed: the same ledger on an engine without the fault
    assert clean.code == 0, clean.told
    assert f"known {name}: passes" in clean.told
    assert f"fixed {name}" in clean.told
    assert gate(capfd)[1:] == ({"fixed findings that are still in the ledger"}, {name: "fixed"})
    assert parity(capfd, "replay", name, "--rules", "parity.toml").code == 0
    assert parity(capfd, "known", "drop", name).code == 0
    assert gate(capfd)[1:] == (set(), {})


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_corpus_runs_before_drawn_cases_under_its_own_settings(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    case = case_from_json({"task": "embed", "prompts": [{"tokens": list(range(5, 40))}]})
    settings = {"stream_policy": "lag(compute@last)", "inputs": "fenced"}
    corpus = folder / "home" / "corpus" / "tiny-qwen3.jsonl"
    assert add(corpus, [KeptCase(case=case, settings=settings, failed=False)]) == 1
    assert add(corpus, [KeptCase(case=case, failed=True)]) == 0, "it stays as it was kept"
    assert read_corpus(corpus)[0].settings == settings
    assert parity(capfd, *ASKED, *PLANT).code == 1
    run = load_run(max((folder / "home" / "runs").iterdir()))
    assert next(iter(run.cases)) == ("tiny-qwen3", case.case_id)
    assert len(run.cases) == 3, "the corpus's and those that were asked for"
    assert [(r.name, r.fails_now) for r in run.replays] == [(case.case_id, True)]
    assert gate(capfd)[2] == {case.case_id: "new"}
    own = [e.settings for e in run.executions.values() if e.case_id == case.case_id and e.plan]
    assert {s["stream_policy"] for s in own} == {"lag(compute@last)"}
    assert redacted(run).replays == run.replays
    assert parity(capfd, *ASKED).code == 0
    assert gate(capfd)[2] == {case.case_id: "passes"}
    assert parity(capfd, *ASKED, "--no-known").code == 0
    assert not load_run(max((folder / "home" / "runs").iterdir())).replays

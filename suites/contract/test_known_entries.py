"""Accepting a finding: the entry in the ledger's text, the case that is kept, and every mistake.

The file that is kept names no fault, no option and no path.

Passes wrongly if a case were kept whose prompts had been taken out. Ruled out by
suites/meta/test_suites_can_fail.py: `a-redacted-case-is-kept`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.campaign.spec import RunSpec
from harness.known_cases import cannot_replay, kept, request
from harness.record import FindingRecord, read_records
from suites.contract.command import parity
from suites.contract.known import (
    ASKED,
    FOUND,
    GONE,
    LAST,
    OWNED,
    RULES,
    entries,
    gate,
    working_folder,
)
from suites.unit.reports.fixtures import failing_run
from suites.unit.reports.parts import CHECKPOINTS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return working_folder(tmp_path, monkeypatch)


@pytest.fixture
def run(folder: Path) -> Path:
    """A recorded run with one finding, as `parity run` would have asked for it."""
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    spec = RunSpec(
        profile="smoke", seed=0, checkpoints=("tiny-qwen3",), axes=("chunk",), plants=("a:b",)
    )
    asked = replace(spec, cases_file="/somewhere/cases.jsonl", options={"url": "http://inside"})
    manifest = replace(recorded.manifest, settings=asked.to_json())
    return replace(recorded, manifest=manifest).write(folder / "home" / "runs" / "one")


def test_a_finding_is_accepted_with_its_smallest_case_and_taken_out_again(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    answer = parity(capsys, "known", "add", "F-tiny", *OWNED, "--reason", 'so it "is"\n')
    assert answer.code == 0, answer.told
    assert entries() == [
        {
            "id": FOUND,
            "owner": "ada",
            "link": "https://tracker.example/1",
            "expires": LAST,
            "reason": 'so it "is"\n',
        }
    ]
    file = Path("parity.known") / f"{FOUND}.json"
    text = file.read_text()
    (finding,) = (r for r in read_records(run) if isinstance(r, FindingRecord))
    assert json.loads(text)["finding"]["case"] == finding.case
    for left_out in ("a:b", "/somewhere", "inside", str(run), "word0", "replay.main"):
        assert left_out not in text, "neither plants, options and paths, nor what a report shows"
    assert f"{FOUND}: ada, until {LAST}" in parity(capsys, "known", "list").told
    assert gate(capsys)[1] == set()
    assert parity(capsys, "known", "drop", FOUND).code == 0
    assert Path("parity.toml").read_text().rstrip() == RULES.rstrip()
    assert not file.exists()
    assert gate(capsys)[1] == {"new findings"}


def test_a_kept_case_runs_on_what_is_judged_now(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    """Its own run had a plant, an option and another chunk than smoke may have one day."""
    assert parity(capsys, "known", "add", FOUND, *OWNED).code == 0
    (case,) = kept(Path("parity.toml"))
    now = RunSpec(
        profile="pr", seed=3, checkpoints=("tiny-qwen3",), axes=("pp",), plants=("c:d",), options={}
    )
    again = request(case, now)
    assert (again.plants, again.options) == (("c:d",), {})
    assert (again.profile, again.axes) == ("smoke", ("chunk",))
    assert again.plan("tiny-qwen3").chunk == again.sizes["chunk"] == 16
    assert cannot_replay(case, now) == ""
    for other, told in (
        (replace(now, checkpoints=("tiny-bert",)), "this run has no tiny-qwen3"),
        (replace(now, system="hf"), "it was found with system=engine, and this run has system=hf"),
        (replace(now, dtype="bfloat16"), "it was found with dtype=float32"),
    ):
        assert told in cannot_replay(case, other)


def test_an_entry_written_by_hand_gets_its_case(
    capsys: pytest.CaptureFixture[str], run: Path, folder: Path
) -> None:
    first = "[[known]]\nid = 'F-other'\nowner = 'eve'\nlink = 'x'\nexpires = 2099-01-01\n# kept\n"
    own = f"[[known]]\nsignature = 'tiny*'\nowner = 'bob'\nlink = 'x'\nexpires = {LAST}\n"
    rules = folder / "own.toml"
    rules.write_text(f"{RULES}{first}\n{own}")
    refused = parity(capsys, "known", "add", FOUND, *OWNED, "--rules", "own.toml")
    assert refused.code == 2
    assert "has an entry for F-tiny-3c9d already: tiny*, owner bob" in refused.told
    assert parity(capsys, "known", "add", FOUND, "--rules", "own.toml").code == 0
    assert (folder / "own.known" / f"{FOUND}.json").exists()
    assert parity(capsys, "known", "drop", "tiny*", "--rules", "own.toml").code == 0
    assert rules.read_text().rstrip() == f"{RULES}{first}".rstrip()
    assert not (folder / "own.known" / f"{FOUND}.json").exists()


def test_a_finding_is_accepted_under_every_policy(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    lines = (run / "records.jsonl").read_text()
    signed = "checkpoint=tiny-qwen3; level=sequence; kind=difference; sets=pp=2; policy=paced(1)"
    own = next(r.signature for r in read_records(run) if isinstance(r, FindingRecord))
    (run / "records.jsonl").write_text(lines.replace(own, signed))
    assert parity(capsys, "known", "add", FOUND, *OWNED, "--any-policy").code == 0
    (entry,) = entries()
    assert entry["signature"] == signed.replace("paced(1)", "*")
    assert "id" not in entry
    assert gate(capsys)[1] == set()
    other = signed.replace("paced(1)", "threaded")
    (run / "records.jsonl").write_text(lines.replace(own, other))
    assert gate(capsys)[1] == set()
    assert parity(capsys, "known", "drop", FOUND).code == 0, "by the id of its kept case"
    assert not entries()
    assert not list(Path("parity.known").iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("add", FOUND), "a new one lacks --owner, --link, --expires"),
        (("add", FOUND, *OWNED[:-1], "soon"), "--expires takes a day such as 2027-01-31"),
        (("add", FOUND, *OWNED[:-1], GONE.isoformat()), "has passed: the finding would fail"),
        (("add", "F-none", *OWNED), f"'F-none' is not one of run one's findings: {FOUND}"),
        (("drop", "F-none"), "parity.toml has no entry 'F-none'; it has none"),
    ],
)
def test_a_mistake_is_a_message_and_changes_nothing(
    capsys: pytest.CaptureFixture[str], run: Path, arguments: tuple[str, ...], told: str
) -> None:
    answer = parity(capsys, "known", *arguments)
    assert (answer.code, told in answer.told) == (2, True), answer.told
    assert Path("parity.toml").read_text() == RULES
    assert not Path("parity.known").exists()


def test_a_redacted_run_has_no_case_to_keep(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    lines = (run / "records.jsonl").read_text().splitlines()
    hidden = [
        re.sub(r'"(query|document)": "[^"]*"', r'"\1": "redacted-0123456789abcdef"', line)
        for line in lines
    ]
    (run / "records.jsonl").write_text("\n".join(hidden) + "\n")
    answer = parity(capsys, "known", "add", FOUND, *OWNED)
    assert answer.code == 2
    assert "run it again without --redact" in answer.told
    assert not entries()


def test_a_kept_case_that_is_no_such_file_is_named_before_anything_runs(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    assert parity(capsys, "known", "add", FOUND, *OWNED).code == 0
    Path("parity.known/F-x.json").write_text("{}")
    answer = parity(capsys, *ASKED)
    assert answer.code == 2
    assert "F-x.json: expected a JSON object of kind 'known-case'" in answer.told


def test_rules_that_would_not_be_read_are_refused(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    for asked, told in (
        (("--rules", "parity.toml", "--no-known"), "--no-known replay nothing"),
        (("--rules", "none.toml"), "no rules file none.toml"),
    ):
        answer = parity(capsys, *ASKED, *asked)
        assert (answer.code, told in answer.told) == (2, True), answer.told
    assert not (folder / "home").exists()

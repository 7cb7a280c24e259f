"""A run that was killed or ran out of time goes on, and ends as if nothing had happened.

Passes wrongly if the old records were only looked at once the new ones were whole. Ruled out by
suites/meta/test_suites_can_fail.py: `a-resumed-run-is-written-over`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from harness.campaign.resume import unfinished
from harness.record import CaseEndRecord, EndRecord, PairRecord, RunWriter, read_records
from suites.contract.command import only_run, parity

ASKED = ("run", "--model", "tiny-bert", "--only", "pp", "--size", "cases=5", "--seed", "3")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("PARITY_HOME", str(folder))
    return folder


def verdicts(folder: Path) -> Counter[tuple[str, ...]]:
    """Every judged pair, by what it says; times and ids of runs are left out."""
    return Counter(
        (pair.case_id, pair.comparison, json.dumps(dict(pair.cell_b), sort_keys=True), pair.outcome)
        for pair in read_records(folder)
        if isinstance(pair, PairRecord)
    )


def ended(folder: Path) -> list[str]:
    return [r.case_id for r in read_records(folder) if isinstance(r, CaseEndRecord)]


def cut(folder: Path, cases: int) -> None:
    """Leave what a killed driver leaves: some whole cases, a part of one, half a line."""
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    ends = [n for n, line in enumerate(lines) if json.loads(line)["kind"] == "case_end"]
    kept = ends[cases - 1] + 4
    (folder / "records.jsonl").write_bytes(b"".join(lines[:kept]) + lines[kept][:25])


def test_a_killed_run_goes_on(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    assert parity(capfd, *ASKED).code == 0
    folder = only_run(home)
    whole, all_ended = verdicts(folder), ended(folder)
    cut(folder, cases=2)
    begun = len(list((folder / "outputs").iterdir()))
    answer = parity(capfd, "run", "--resume", folder.name)
    assert answer.code == 0
    assert f"run {folder.name}: going on after 2 finished cases" in answer.told
    assert verdicts(folder) == whole
    assert sorted(ended(folder)) == sorted(all_ended)
    assert len(list((folder / "outputs").iterdir())) == begun  # equal answers share a file
    assert sum(isinstance(r, EndRecord) for r in read_records(folder)) == 1
    again = parity(capfd, "run", "--resume", folder.name)
    assert again.code == 2
    assert f"{folder.name} ran to its end; `parity judge {folder.name}` judges it" in again.told


@pytest.mark.nightly
def test_time_ends_and_more_time_goes_on(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    answer = parity(capfd, *ASKED, "--minutes", "0")
    folder = only_run(home)
    assert not ended(folder)
    told = "tiny-bert: its share of the time ended before its cases did; `parity run --resume`"
    assert any(told in r.text for r in read_records(folder) if r.kind == "notice"), answer.told
    assert parity(capfd, "run", "--resume", str(folder)).code == 0
    assert len(ended(folder)) == 5
    assert set(verdicts(folder)) > set()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--seed", "4"), "--seed would change it. Leave them out"),
        (("--only", "pp", "--plant", "x"), "--only, --plant would change it"),
    ],
)
def test_what_would_change_the_run_is_refused(
    capfd: pytest.CaptureFixture[str], home: Path, arguments: tuple[str, ...], told: str
) -> None:
    parity(capfd, *ASKED, "--minutes", "0")
    answer = parity(capfd, "run", "--resume", only_run(home).name, *arguments)
    assert answer.code == 2
    assert told in answer.told


def test_another_engine_is_refused(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    parity(capfd, *ASKED, "--minutes", "0")
    folder = only_run(home)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["environment"]["engine source"] = "0" * 16
    (folder / "run.json").write_text(json.dumps(manifest))
    answer = parity(capfd, "run", "--resume", folder.name)
    assert answer.code == 2
    assert f"engine source {'0' * 16!r} then" in answer.told


def test_a_run_without_its_prompts_is_refused(
    capfd: pytest.CaptureFixture[str], home: Path
) -> None:
    parity(capfd, *ASKED, "--minutes", "0", "--redact")
    answer = parity(capfd, "run", "--resume", only_run(home).name)
    assert answer.code == 2
    assert "keeps no prompts (--redact)" in answer.told


def test_the_old_records_stay_until_the_new_are_whole(
    capfd: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parity(capfd, *ASKED)
    folder = only_run(home)
    cut(folder, cases=3)
    before = (folder / "records.jsonl").read_bytes()
    left = unfinished(folder)

    def torn():  # type: ignore[no-untyped-def]
        yield from list(left.records())[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RunWriter.reopen(folder, left.manifest, torn())
    assert (folder / "records.jsonl").read_bytes() == before

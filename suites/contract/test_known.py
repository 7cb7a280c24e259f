"""What is known is replayed before any drawn case, and its fate is told everywhere.

The same ledger meets an engine with and without the fault, and the file that is kept names none.

Passes wrongly if a known finding were told to fail still, whatever its replay did. Ruled out by
suites/meta/test_suites_can_fail.py: `every-known-finding-still-fails`.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from harness.campaign.corpus import KeptCase, add, read_corpus
from harness.campaign.spec import RunSpec
from harness.case import case_from_json
from harness.known_cases import cannot_replay, kept, request
from harness.record import CaseRecord, FindingRecord, ReplayRecord, Source, read_records
from reports.gate import SCHEMA_FILE
from reports.load import load_run
from reports.redaction import redacted
from suites.contract.command import Answer, parity
from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import CHECKPOINTS, RecordedRun

TODAY = datetime.now(UTC).date()
LAST = TODAY + timedelta(days=30)
GONE = TODAY - timedelta(days=1)
RULES = "version = 1\n\n[limits]  # a comment that stays\nallow_plants = true\n"
SCHEMA = json.loads(SCHEMA_FILE.read_text())
OWNED = ("--owner", "ada", "--link", "https://tracker.example/1", "--expires", LAST.isoformat())
FOUND = "F-tiny-3c9d"
PLANT = ("--plant", "stage-skips-poststep")
ASKED = (
    "run",
    "--model",
    "tiny-qwen3",
    "--only",
    "chunk,pp",
    "--size",
    "cases=2",
    "--workers",
    "1",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder of a user's own, and the rules in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARITY_HOME", str(tmp_path / "home"))
    (tmp_path / "parity.toml").write_text(RULES)
    return tmp_path


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


def gate(capture: pytest.CaptureFixture[str], *run: str) -> tuple[Answer, set[str], dict[str, str]]:
    """What the gate said, the rules that were not met, and the fate of everything known."""
    told = parity(capture, "gate", *run, "--json")
    document = json.loads(told.out)
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    broken = {check["rule"] for check in document["checks"] if not check["passed"]}
    return told, broken, {row["name"]: row["state"] for row in document["known"]}


def entries() -> list[dict[str, object]]:
    found: list[dict[str, object]] = tomllib.loads(Path("parity.toml").read_text()).get("known", [])
    return found


# ------------------------------------------------------------------------------- the ledger's text


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


# ------------------------------------------------------------------------------------------- fates


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
    section = page[page.index('<section id="known"') :]
    assert f"</span> {fate}</abbr>" in section[: section.index("</section>")]
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


# ------------------------------------------------------------------------------------- real engines


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

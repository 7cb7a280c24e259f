"""`parity gate`: every rule opens and closes the gate through the command line.

Passes wrongly if each run that must be refused broke several rules, so that no rule was needed.
Ruled out by suites/meta/test_suites_can_fail.py: `the-gate-trusts-every-record`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from harness.record import FindingRecord, Outcome, PairRecord
from reports.gate import SCHEMA_FILE, read_rules
from suites.contract.command import Answer, parity
from suites.unit.reports.fixtures import HOSTILE, clean_run, failing_run, interrupted_run
from suites.unit.reports.parts import RecordedRun, end

ROOT = Path(__file__).resolve().parents[2]
TODAY = datetime.now(UTC).date()
SCHEMA = json.loads(SCHEMA_FILE.read_text())
START = "version = 1\n[limits]\nallow_plants = true\n"


def known(name: str, *, days: int = 30, owner: str = "ada") -> str:
    key = "id" if name.startswith("F-") else "signature"
    last = TODAY + timedelta(days=days)
    return (
        f"[[known]]\n{key} = '{name}'\nowner = '{owner}'\n"
        f"link = 'https://tracker.example/1'\nexpires = {last}\n"
    )


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(START)
    return path


def written(recorded: RecordedRun, folder: Path, *records: PairRecord) -> Path:
    """The run's folder; `records` added, and counted in the end record."""
    kept = [r for r in recorded.records if r.kind != "end"]
    return replace(recorded, records=(*kept, *records, end((*kept, *records)))).write(folder)


def one_more(recorded: RecordedRun, outcome: Outcome) -> PairRecord:
    pair = next(r for r in recorded.records if isinstance(r, PairRecord))
    return replace(pair, pair_id="one-more", outcome=outcome, reason="said so")


def gate(capsys: pytest.CaptureFixture[str], run: Path, rules: Path) -> tuple[Answer, set[str]]:
    """What the command said, and the rules that were not met; the JSON is held to its schema."""
    told = parity(capsys, "gate", str(run), "--rules", str(rules), "--json")
    document = json.loads(told.out)
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    assert document["exit_code"] == told.code
    assert document["passed"] == (told.code == 0)
    return told, {check["rule"] for check in document["checks"] if not check["passed"]}


def test_a_clean_run_passes_and_says_what_it_rests_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    run = clean_run(num_cases=2).write(tmp_path / "run")
    told, broken = gate(capsys, run, rules)
    assert (told.code, broken) == (0, set())
    answer = parity(capsys, "gate", str(run), "--rules", str(rules))
    assert answer.code == 0
    assert "judged cells of tiny-qwen3: 16 (wanted: at least 16 of 16)" in answer.told
    assert "The gate is open" in answer.told


def test_a_new_finding_closes_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    told, broken = gate(capsys, failing_run(num_cases=3).write(tmp_path / "run"), rules)
    assert (told.code, broken) == (1, {"new findings"})
    assert {f["state"] for f in json.loads(told.out)["findings"]} == {"new"}


@pytest.mark.parametrize("by", ["id", "signature"])
def test_a_known_finding_passes_until_its_last_day_and_then_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path, by: str
) -> None:
    recorded = failing_run(num_cases=3)
    run = recorded.write(tmp_path / "run")
    found = [r for r in recorded.records if isinstance(r, FindingRecord)]
    names = [f.finding_id if by == "id" else f"{f.checkpoint}/*/layer1" for f in found]
    for days, code, broken in ((0, 0, set()), (1, 0, set()), (-1, 1, {"expired findings"})):
        rules.write_text(START + "".join(known(name, days=days) for name in names))
        told, found_broken = gate(capsys, run, rules)
        assert (told.code, found_broken) == (code, broken), days
    answer = parity(capsys, "gate", str(run), "--rules", str(rules))
    assert f"(ada, until {TODAY - timedelta(days=1)})" in answer.told


def test_a_known_finding_that_is_not_found_closes_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    run = clean_run(num_cases=2).write(tmp_path / "run")
    rules.write_text(START + known("F-gone"))
    told, broken = gate(capsys, run, rules)
    assert (told.code, broken) == (1, {"known findings that were not found"})
    assert [entry["name"] for entry in json.loads(told.out)["unmatched"]] == ["F-gone"]


def test_a_failure_that_no_finding_covers_cannot_be_known(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    recorded = failing_run(num_cases=3)
    found = [r for r in recorded.records if isinstance(r, FindingRecord)]
    rules.write_text(START + "".join(known(f.finding_id) for f in found))
    run = written(recorded, tmp_path / "run", one_more(recorded, Outcome.FAIL))
    assert gate(capsys, run, rules)[1] == {"failures without a finding"}


@pytest.mark.parametrize(
    ("outcome", "limit", "code", "broken"),
    [
        (Outcome.VACUOUS, "max_vacuous", 3, "vacuous comparisons"),
        (Outcome.ERROR, "max_errors", 2, "errors"),
    ],
)
def test_more_than_the_limit_closes_it(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    rules: Path,
    outcome: Outcome,
    limit: str,
    code: int,
    broken: str,
) -> None:
    recorded = clean_run(num_cases=2)
    run = written(recorded, tmp_path / "run", one_more(recorded, outcome))
    told, found = gate(capsys, run, rules)
    assert (told.code, found) == (code, {broken})
    rules.write_text(START + f"{limit} = 1\n")
    assert gate(capsys, run, rules)[0].code == 0


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("min_cases = 9", "judged cases"),
        ("max_warnings = 0", "comparisons with a warning"),
        ("[checkpoints.gpt-2]\nmin_cases = 1", "judged cases of gpt-2"),
        ("[checkpoints.tiny-bert]\nmin_cases = 3", "judged cases of tiny-bert"),
    ],
)
def test_too_little_closes_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path, rule: str, broken: str
) -> None:
    recorded = clean_run(num_cases=2)
    warned = replace(one_more(recorded, Outcome.PASS), reason="", warnings=("near",))
    run = written(recorded, tmp_path / "run", warned)
    rules.write_text(START + rule + "\n")
    told, found = gate(capsys, run, rules)
    assert (told.code, found) == (3, {broken})


@pytest.mark.parametrize(
    ("share", "code"), [("min_cells = 0.9", 0), ("min_cells = 0.95", 3), ("min_cells = 1", 3)]
)
def test_coverage_is_held_per_checkpoint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path, share: str, code: int
) -> None:
    recorded = clean_run(num_cases=2)
    lost = {"compile": "compiled", "chunk": "whole", "async": "async", "pp": "2"}
    records = [
        r
        for r in recorded.records
        if not (
            isinstance(r, PairRecord)
            and r.checkpoint == "SmolLM2-135M-Instruct"
            and lost in (r.cell_a, r.cell_b)
        )
    ]
    run = written(replace(recorded, records=tuple(records)), tmp_path / "run")
    rules.write_text(START + f"min_edges = 0\n{share}\n")
    told, found = gate(capsys, run, rules)
    assert told.code == code
    assert found == ({"judged cells of SmolLM2-135M-Instruct"} if code else set())


def test_a_killed_run_an_edited_one_and_a_planted_one_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    killed = interrupted_run().write(tmp_path / "killed")
    rules.write_text(START + "min_cells = 0\nmin_edges = 0\n")
    told, broken = gate(capsys, killed, rules)
    assert (told.code, broken) == (2, {"complete run"})
    recorded = clean_run(num_cases=2)
    edited = replace(recorded, records=(one_more(recorded, Outcome.PASS), *recorded.records))
    told, broken = gate(capsys, edited.write(tmp_path / "edited"), rules)
    assert (told.code, broken) == (2, {"records add up"})
    rules.write_text("version = 1\n")
    planted = replace(recorded, manifest=replace(recorded.manifest, plants=("a-fault",)))
    told, broken = gate(capsys, planted.write(tmp_path / "planted"), rules)
    assert (told.code, broken) == (2, {"plants"})


def test_another_profile_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    run = clean_run(num_cases=2).write(tmp_path / "run")
    rules.write_text("version = 1\n[limits]\nprofiles = ['nightly']\n")
    told, broken = gate(capsys, run, rules)
    assert (told.code, broken) == (2, {"profile"})


def test_the_first_that_applies_is_the_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    recorded = failing_run(num_cases=3)
    worse = [one_more(recorded, o) for o in (Outcome.VACUOUS, Outcome.ERROR)]
    run = written(recorded, tmp_path / "run", *worse)
    told, broken = gate(capsys, run, rules)
    assert (told.code, broken) == (1, {"new findings", "vacuous comparisons", "errors"})


def test_the_verdict_is_also_written_and_hostile_text_does_not_act(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path
) -> None:
    recorded = failing_run(num_cases=3)
    nasty = " ".join(HOSTILE)
    records = tuple(
        replace(r, title=nasty, finding_id=nasty) if isinstance(r, FindingRecord) else r
        for r in recorded.records
    )
    run = replace(recorded, records=records).write(tmp_path / "run")
    target = tmp_path / "deep" / "verdict.json"
    answer = parity(capsys, "gate", str(run), "--rules", str(rules), "-o", str(target))
    assert answer.code == 1
    assert not set("\x00\x07\x1b\u202e") & set(answer.out)
    assert "\\u{202e}" in answer.out
    jsonschema.validate(json.loads(target.read_text()), SCHEMA)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version = 2", "version=2; this version reads 1"),
        ("version = ", "is not TOML"),
        ("version = 1\nlimit = 1", "the file has unknown limit; valid: version, limits,"),
        ("version = 1\n[limits]\nmax_vacous = 1", "[limits] has unknown max_vacous; valid: "),
        ("version = 1\n[limits]\nmax_errors = -1", "max_errors=-1 must be a whole number"),
        ("version = 1\n[limits]\nmin_cells = 90", "min_cells=90 must be a share from 0 to 1"),
        ("version = 1\n[limits]\nprofiles = 'pr'", "must be a list of profile names"),
        ("version = 1\n[limits]\nallow_plants = 1", "must be true or false"),
        ("version = 1\n[[known]]\nowner = 'a'", "needs an id or a signature, and not both"),
        ("version = 1\n[[known]]\nid = 'F'\nowner = 'a'", "number 1 lacks link, expires"),
        (START + known("F-x").replace(f"{TODAY.year}", "'"), "is not TOML"),
        (START + known("* "), "would cover every finding"),
        ("version = 1\n[checkpoints]\ntiny = 3", "checkpoints.tiny must be a table, got int"),
    ],
)
def test_a_rules_file_with_a_mistake_is_a_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rules: Path, text: str, told: str
) -> None:
    run = clean_run(num_cases=1).write(tmp_path / "run")
    rules.write_text(text)
    answer = parity(capsys, "gate", str(run), "--rules", str(rules))
    assert answer.code == 2
    assert told in answer.told
    assert str(rules) in answer.told


def test_a_rules_file_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    answer = parity(capsys, "gate", "--rules", str(tmp_path / "none.toml"))
    assert answer.code == 2
    assert "none.toml" in answer.told
    assert "--rules" in answer.told


def test_the_rules_of_this_repository_are_strict() -> None:
    rules = read_rules(ROOT / "parity.toml")
    assert rules.limits.profiles == ("pr",)
    assert (rules.limits.max_errors, rules.limits.max_vacuous) == (0, 0)
    assert rules.limits.min_cells == rules.limits.min_edges == 1.0
    assert set(rules.checkpoints) == {"tiny-qwen3", "tiny-bert", "smollm2", "minilm"}


def test_the_schema_refuses_what_is_no_verdict() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1}, SCHEMA)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

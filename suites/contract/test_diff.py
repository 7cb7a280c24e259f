"""`parity diff`: a fault apart, both ways; flaky, expired, unseen; drift and environment.

Passes wrongly if a run that did not look for a failure was taken for one that no longer has it.
Ruled out by suites/meta/test_suites_can_fail.py: `what-was-not-looked-for-is-fixed`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli.diff import since_the_last_run
from harness.record import FindingRecord, PairRecord
from reports.load import load_run
from suites.contract.command import parity
from suites.contract.test_gate import START, known
from suites.unit.reports.fixtures import HOSTILE, clean_run, failing_run, interrupted_run
from suites.unit.reports.parts import CHECKPOINTS, RecordedRun


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARITY_HOME", str(tmp_path))
    return tmp_path / "runs"


def store(home: Path, name: str, recorded: RecordedRun, **changes: Any) -> str:
    """Write a run under `name`; names sort as the runs' times do."""
    manifest = replace(
        recorded.manifest,
        run_id=name,
        created=f"2026-11-29T10:00:0{len(list(home.glob('*')))}Z",
        **{"checkpoints": CHECKPOINTS[:2], "plants": (), **changes},
    )
    replace(recorded, manifest=manifest).write(home / name)
    return name


def clean() -> RecordedRun:
    """As `failing_run`, without its plant."""
    recorded = clean_run(num_cases=3)
    kept = {c.name for c in CHECKPOINTS[:2]}
    records = [r for r in recorded.records if getattr(r, "checkpoint", "tiny-qwen3") in kept]
    return replace(recorded, records=tuple(records))


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Mapping[str, Any]]:
    answer = parity(capsys, "diff", *arguments, "--json")
    return answer.code, json.loads(answer.out)


def states(document: Mapping[str, Any]) -> set[str]:
    return {f["change"] for f in document["findings"]}


def test_a_planted_fault_is_new_one_way_and_fixed_the_other(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    good = store(home, "good", clean())
    bad = store(
        home,
        "bad",
        failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2]),
        plants=("stale-input-buffer",),
    )
    code, document = told(capsys, good, bad)
    assert (code, states(document)) == (1, {"new"})
    assert len(document["findings"]) == 2
    difference = {"kind": "run", "name": "planted faults"}
    assert {**difference, "before": "none", "now": "stale-input-buffer"} in document["differences"]
    code, document = told(capsys, bad, good)
    assert (code, states(document)) == (0, {"fixed"})
    code, document = told(
        capsys, bad, store(home, "worse", failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2]))
    )
    assert (code, states(document)) == (0, {"still failing"})


def test_a_run_is_compared_with_the_one_of_its_kind_before_it(home: Path) -> None:
    two = CHECKPOINTS[:2]
    good = store(home, "a-good", clean())
    store(home, "b-other", clean(), profile="nightly")
    store(home, "c-fewer", failing_run(num_cases=3, checkpoints=two[:1]), checkpoints=two[:1])
    cut = clean()
    store(home, "d-killed", replace(cut, records=cut.records[:40]))
    torn = home / store(home, "e-torn", clean()) / "records.jsonl"
    torn.write_bytes(b"not json\n" + torn.read_bytes())
    bad = store(home, "f-bad", failing_run(num_cases=3, checkpoints=two))
    found = since_the_last_run(home / bad, load_run(home / bad))
    assert found is not None
    assert (found.baseline, found.run) == (good, bad)
    assert [r.run_id for r in found.runs] == [good, bad]
    assert len(found.findings) == 2
    assert since_the_last_run(home / good, load_run(home / good)) is None


def test_too_much_history_is_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(home, "a", clean())
    middle, last = store(home, "b", clean()), store(home, "c", clean())
    one = (home / middle / "records.jsonl").stat().st_size
    monkeypatch.setattr("harness.cli.diff.MAX_BYTES", one + one // 2)
    found = since_the_last_run(home / last, load_run(home / last))
    assert found is not None
    assert [r.run_id for r in found.runs] == [middle, last]


def test_the_stream_policy_that_showed_it_does_not_make_it_new(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2])

    def under(policy: str) -> RecordedRun:
        return replace(
            recorded,
            records=tuple(
                replace(r, signature=f"{r.signature}; policy={policy}", finding_id=f"F-{policy}")
                if isinstance(r, FindingRecord)
                else r
                for r in recorded.records
            ),
        )

    a, b = store(home, "a", under("any")), store(home, "b", under("paced(1)"))
    code, document = told(capsys, a, b)
    assert (code, states(document)) == (0, {"still failing"})
    assert document["findings"][0]["ids"] == ["F-paced(1)", "F-any"]


@pytest.mark.parametrize("commit", ["abc", "def"])
def test_what_comes_and_goes_while_nothing_differs_is_flaky(
    capsys: pytest.CaptureFixture[str], home: Path, commit: str
) -> None:
    """Another commit alone is no reason: the digests say that the same code ran."""
    failing = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2])
    good = store(home, "good", clean(), commit="abc")
    bad = store(home, "bad", failing, commit=commit)
    code, document = told(capsys, good, bad)
    assert (code, states(document)) == (0, {"flaky"})
    named = {d["name"]: (d["before"], d["now"]) for d in document["differences"]}
    assert named == ({} if commit == "abc" else {"commit": ("abc", commit)})
    assert "nothing that is recorded differs" in document["findings"][0]["note"]


def test_what_comes_and_goes_over_the_history_is_flaky(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    store(home, "first", failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2]))
    middle = store(home, "middle", clean(), environment={"engine source": "b"})
    last = store(
        home,
        "last",
        failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2]),
        environment={"engine source": "c"},
    )
    code, document = told(capsys, middle, last)
    assert (code, states(document)) == (0, {"flaky"})
    assert document["findings"][0]["seen"] == [True, False, True]
    code, document = told(capsys, middle, last, "--history", "0")
    assert (code, states(document)) == (1, {"new"})


def test_a_known_finding_that_has_expired_is_told(
    capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    a, b = (
        store(home, "a", failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2])),
        store(home, "b", failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2])),
    )
    rules = tmp_path / "rules.toml"
    for days, code, change in ((1, 0, "still failing"), (-1, 1, "expired")):
        rules.write_text(START + known("*/layer1", days=days))
        assert told(capsys, a, b, "--rules", str(rules))[0] == code
        assert states(told(capsys, a, b, "--rules", str(rules))[1]) == {change}


@pytest.mark.parametrize("why", ["checkpoint", "switch", "interrupted", "unattributed"])
def test_what_could_not_be_found_is_not_called_fixed(
    capsys: pytest.CaptureFixture[str], home: Path, why: str
) -> None:
    bad = store(
        home, "bad", failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2]), plants=("a-fault",)
    )
    recorded, changes = clean(), {}
    if why == "checkpoint":
        changes = {"checkpoints": CHECKPOINTS[2:3]}
    elif why == "switch":
        changes = {"axes": recorded.manifest.axes[2:]}
    elif why == "interrupted":
        recorded = interrupted_run()
    else:
        failing = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2])
        records = tuple(r for r in failing.records if not isinstance(r, FindingRecord))
        recorded = replace(failing, records=records)
    later = store(home, "later", recorded, **changes)
    code, document = told(capsys, bad, later)
    assert (code, states(document)) == (0, {"not looked for"})
    assert told(capsys, later, bad)[1]["findings"][0]["note"].endswith("could not have found it")


def test_drift_below_the_bound_is_told(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    recorded = clean()
    grown = tuple(
        replace(
            r,
            measurements=tuple(
                replace(m, value=3 * m.value) if m.metric == "one_minus_cosine" else m
                for m in r.measurements
            ),
        )
        if isinstance(r, PairRecord)
        else r
        for r in recorded.records
    )
    a = store(home, "a", recorded)
    b = store(home, "b", replace(recorded, records=grown), environment={"torch": "2.14"})
    code, document = told(capsys, a, b)
    assert code == 0
    rows = {(d["metric"], d["growth"], d["grown"]) for d in document["drift"]}
    assert ("one_minus_cosine", "3 times", True) in rows
    assert ("relative_l2", "as before", False) in rows
    answer = parity(capsys, "diff", a, b)
    assert "one_minus_cosine: 3 times" in answer.told
    assert "environment: torch: 2.13.0+cpu -> 2.14" in answer.told


def test_other_cases_are_a_caution(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    a, b = store(home, "a", clean()), store(home, "b", clean(), seed=7)
    assert "did not run the same cases" in told(capsys, a, b)[1]["caution"]
    assert "! The runs did not run the same cases" in parity(capsys, "diff", a, b).told


def test_hostile_text_does_not_act(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    nasty = " ".join(HOSTILE)
    recorded = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:2])
    records = tuple(
        replace(r, title=nasty, finding_id=nasty, metric=nasty)
        if isinstance(r, FindingRecord)
        else r
        for r in recorded.records
    )
    a = store(home, "a", clean())
    b = store(home, "b", replace(recorded, records=records), environment={nasty: nasty})
    answer = parity(capsys, "diff", a, b)
    assert answer.code == 1
    assert not set("\x00\x07\x1b\u202e") & set(answer.out)
    assert "[red]bold[/red]" in answer.told

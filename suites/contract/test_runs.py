"""Runs that meet trouble end with a message, an exit code and every record they could make.

Passes wrongly if the errors were told, and the comparisons that they spoil set aside as some that
cannot apply. Ruled out by suites/meta/test_suites_can_fail.py: `a-crashed-side-is-set-aside`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.checkpoints.catalogue import path_of
from harness.record import ExecutionRecord, Outcome, read_records
from reports.load import Run, load_run
from suites.contract import damage
from suites.contract.command import only_run, parity
from suites.contract.sessions import TEST_TIMEOUT_S, end_session, left_of, wait_for

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for runs."""
    folder = tmp_path / "home"
    monkeypatch.setenv("PARITY_HOME", str(folder))
    return folder


def outcomes(run: Run) -> dict[str, set[Outcome]]:
    """Text or first tokens of a case -> how its comparisons ended."""
    found: dict[str, set[Outcome]] = {}
    for pair in run.pairs:
        prompts = run.cases[pair.checkpoint, pair.case_id].case["prompts"]
        found.setdefault(str(prompts[0])[:40], set()).add(pair.outcome)
    return found


def test_bad_cases_cost_nothing_but_themselves(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, home: Path
) -> None:
    good = {"task": "embed", "prompts": [{"text": "good"}, {"text": "and better"}, {"text": "x"}]}
    cases = [
        {"task": "embed", "prompts": [{"tokens": [5, 10**8]}]},
        {"task": "embed", "prompts": [{"tokens": []}]},
        {"task": "embed", "prompts": [{"tokens": [7] * 300}]},
        good,
        {"task": "score", "prompts": [{"query": "unanswered", "document": "question"}]},
        {"task": "embed", "prompts": [{"text": "bad"}], "activation": True},
    ]
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    answer = parity(capfd, "run", "--model", "tiny-bert", "--only", "pp", "--cases", str(file))
    assert answer.code == 2
    run = load_run(only_run(home))
    assert len(run.cases) == len(cases)
    ended = outcomes(run)
    assert ended.pop("{'text': 'good'}") == {Outcome.PASS}
    assert len(ended) == len(cases) - 1
    assert set().union(*ended.values()) == {Outcome.ERROR}
    reasons = " ".join(pair.reason for pair in run.pairs)
    for told in (
        "token id 100000000 is out of range; tiny-bert has ids 0..1023",
        "has an empty prompt; give at least one token",
        "has 300 tokens, more than max_model_len=256",
        "task='classify' is not supported: the model offers ['embed', 'token_embed']",
        "activation=True does not apply to task='embed'",
    ):
        assert told in reasons


def test_without_a_compiler_compiled_cells_are_errors(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    home: Path,
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    file = tmp_path / "cases.jsonl"
    file.write_text('{"task": "embed", "prompts": ["one", "two"]}\n')
    answer = parity(capfd, "run", "--model", "tiny-bert", "--only", "compile", "--cases", str(file))
    assert answer.code == 2
    assert "mode='compiled' needs a C++ compiler; looked for" in answer.told
    run = load_run(only_run(home))
    ran = {e.cell.get("compile"): e.error for e in run.executions.values() if "compile" in e.cell}
    assert ran.keys() == {"eager", "compiled"}
    assert not ran["eager"]
    assert ran["compiled"].startswith("CompilerUnavailableError: ")
    assert {p.outcome for p in run.pairs if p.axes == ("compile",)} == {Outcome.ERROR}
    assert {p.outcome for p in run.pairs if not p.axes} == {Outcome.PASS}, "the oracle's pair"


def spoil_weights(folder: Path) -> None:
    damage.poison_weights(folder, "embeddings.word_embeddings.weight")


def spoil_architecture(folder: Path) -> None:
    damage.edit_config(folder, architectures=["GPT2LMHeadModel"])


def test_damaged_checkpoints_end_as_notices(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    home: Path,
) -> None:
    """The cache's manifest vouches for them, so that the engine is the first to notice."""
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "cache"))
    models = []
    for name, spoil in (("tiny-bert", spoil_weights), ("tiny-qwen3", spoil_architecture)):
        folder = path_of(name)
        spoil(folder)
        damage.vouch(folder)
        models += ["--model", name]
    answer = parity(capfd, "run", *models, "--only", "pp", "--workers", "1")
    assert answer.code == 2
    for told in (
        "tiny-bert was not finished: CheckpointError: embeddings.word_embeddings.weight in",
        "tiny-qwen3 was not finished: UnsupportedModelError: architectures=['GPT2LMHeadModel'] in",
        "No verdict",
    ):
        assert told in answer.told
    assert (only_run(home) / "report.html").exists()
    assert (only_run(home) / "records.jsonl").read_text().count('"detail": "Traceback') == 2


def test_headers_that_cannot_be_read_are_named_before_anything_runs(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    home: Path,
) -> None:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "cache"))
    folder = path_of("tiny-bert")
    (folder / "config.json").write_text("{")
    damage.vouch(folder)
    answer = parity(capfd, "run", "--model", "tiny-bert")
    assert answer.code == 2
    assert f"checkpoint tiny-bert: cannot read the headers of {folder}" in answer.told
    assert not home.exists()


RUN = "run --profile smoke --model tiny-bert --only async,pp"


def executions(home: Path) -> int:
    """How many executions the one run has recorded so far."""
    folders = list((home / "runs").glob("*/records.jsonl"))
    if not folders:
        return 0
    return sum(isinstance(record, ExecutionRecord) for record in read_records(folders[0].parent))


@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_what_a_killed_run_recorded_can_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path
) -> None:
    log = tmp_path / "log"
    with log.open("w") as stream:
        driver = subprocess.Popen(
            [sys.executable, "-m", "harness", *RUN.split()],
            cwd=ROOT,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        wait_for(lambda: executions(home) > 0, driver, log)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        assert not left_of(driver.pid)
    finally:
        end_session(driver.pid)
    recorded = executions(home)
    run = load_run(only_run(home))
    assert run.interrupted
    assert len(run.executions) == recorded > 0
    answer = parity(capsys, "report")
    assert answer.code == 0
    assert "the run was interrupted" in answer.told
    page = (only_run(home) / "report.html").read_text()
    assert "the run was interrupted" in page
    answer = parity(capsys, "report", "--json")
    assert json.loads(answer.out)["interrupted"] is True
    assert json.loads(answer.out)["exit_code"] != 0

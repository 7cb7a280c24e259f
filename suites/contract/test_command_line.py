"""Misuse of a command: exit code 2, the offending thing, the valid choices, nothing left behind.

Passes wrongly if a command was refused in the right words after it had begun to write. Ruled out by
suites/meta/test_suites_can_fail.py: `a-refused-command-leaves-a-folder`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.axes import ALL_AXES
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.faults import FAULTS
from suites.contract.command import parity

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for runs."""
    folder = tmp_path / "home"
    monkeypatch.setenv("PARITY_HOME", str(folder))
    return folder


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("run --only compile,chonk", "unknown axis chonk; valid: compile, chunk, async, pp"),
        ("run --plant no-such-bug", f"unknown plant no-such-bug; valid: {min(FAULTS)}"),
        ("run --profile weekly", "unknown profile 'weekly'; valid: smoke, visit, pr, nightly"),
        ("run --model gpt-2", f"unknown model 'gpt-2'; valid: {', '.join(CHECKPOINTS)}"),
        ("run --workers 0", "Invalid value for '--workers'"),
        ("run --seed one", "Invalid value for '--seed'"),
        ("run --chonk 3", "No such option: --chonk"),
        ("chonk", "No such command 'chonk'"),
        ("report no-such-run", "no run 'no-such-run'; runs under"),
        ("report", "there is no run under"),
    ],
)
def test_misuse_is_a_message(
    capsys: pytest.CaptureFixture[str], home: Path, arguments: str, told: str
) -> None:
    answer = parity(capsys, *arguments.split())
    assert answer.code == 2
    assert told in answer.told
    assert not answer.out
    assert not home.exists(), "a command that is refused leaves no run"


GOOD = json.dumps({"task": "embed", "prompts": ["a prompt"]})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe\x00", "'utf-8' codec can't decode"),
        (b"", "holds no case; write one JSON object a line"),
        (f"{GOOD}\n{{".encode(), "line 2: Expecting property name"),
        (b"[1]", "line 1: a case is a JSON object, got list"),
        (
            b'{"task": "embed", "prompts": ["x"], "normalise": true}',
            "line 1: unknown key ['normalise'] in a case; valid: ['activation', 'arrivals', ",
        ),
        (
            b'{"task": "embed", "prompts": [{"txt": "x"}]}',
            "line 1: prompt 0 has unknown key ['txt']; valid: text, tokens, query, document",
        ),
        (
            b'{"task": "summarise", "prompts": ["x"]}',
            "line 1: task='summarise' is unknown; valid: embed, classify, score, token_embed",
        ),
        (b'{"task": "embed", "prompts": []}', "line 1: a case needs at least one prompt"),
        (b'{"task": "embed"}', "line 1: prompts must be a list, got NoneType"),
        (
            b'{"task": "embed", "prompts": [{"tokens": [1, "2"]}]}',
            "line 1: prompt 0: tokens must be whole numbers",
        ),
        (
            b'{"task": "embed", "prompts": [{"tokens": 7}]}',
            "line 1: prompt 0: tokens must be a list, got int",
        ),
        (
            b'{"task": "score", "prompts": [{"query": "x"}]}',
            "line 1: a prompt is exactly one of text, tokens, or query with document",
        ),
        (
            b'{"task": "embed", "prompts": ["x"], "dimensions": "64"}',
            "line 1: dimensions='64' is not a whole number",
        ),
        (
            b'{"task": "embed", "prompts": ["x"], "normalize": "yes"}',
            "line 1: normalize='yes' is not true, false or null",
        ),
        (
            b'{"task": "embed", "prompts": [{"text": 7}]}',
            "line 1: prompt 0: text must be a string, got int",
        ),
        (
            b'{"task": "embed", "prompts": ["x"], "arrivals": [-1]}',
            "line 1: arrivals=[-1] must be whole numbers of at least 0",
        ),
        (
            b'{"task": "embed", "prompts": ["x", "y"], "arrivals": [0]}',
            "line 1: arrivals has 1 entries for 2 prompts",
        ),
    ],
)
def test_an_unreadable_case_file_is_a_message(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    home: Path,
    content: bytes | None,
    told: str,
) -> None:
    file = tmp_path / "cases.jsonl"
    if content is not None:
        file.write_bytes(content)
    answer = parity(capsys, "run", "--model", "tiny-bert", "--cases", str(file))
    assert answer.code == 2
    assert told in answer.told
    assert str(file) in answer.told
    assert not home.exists()


def test_a_checkpoint_that_is_not_here_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path
) -> None:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path / "empty"))
    answer = parity(capsys, "run", "--profile", "pr", "--model", "minilm")
    assert answer.code == 2
    assert "none of the wanted checkpoints is here: minilm" in answer.told
    assert not home.exists()


@pytest.mark.parametrize("variable", ["PARITY_HOME", "PARITY_CACHE"])
def test_a_folder_that_cannot_be_made_is_named(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
) -> None:
    file = tmp_path / "a-file"
    file.touch()
    monkeypatch.setenv(variable, str(file))
    answer = parity(capsys, "run", "--model", "tiny-bert")
    assert answer.code == 2
    assert str(file) in answer.told


def test_a_record_that_cannot_be_read_is_named(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    folder = home / "runs" / "some-run"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"format_version": 99}')
    answer = parity(capsys, "report", "some-run")
    assert answer.code == 2
    assert "format_version=99; this version reads 1" in answer.told


def test_a_real_process_ends_the_same_way(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "run", "--only", "chonk"],
        cwd=ROOT,
        env={**os.environ, "PARITY_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"parity: unknown axis chonk; valid: {', '.join(ALL_AXES)}\n"
    assert not done.stdout

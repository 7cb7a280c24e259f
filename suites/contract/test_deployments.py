"""Two deployments on traffic, by command: the same, different, dead, idle, and redacted.

Passes wrongly if a canary that is wrong or ignores its switch could pass, or records held no prompt
to begin with. Ruled out by `test_a_wrong_canary_fails_and_says_how_far`,
`test_a_switch_that_does_not_act_is_vacuous` and suites/meta/test_suites_can_fail.py:
`prompts-stay-in-redacted-records`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.app import run_app
from harness.record import CaseRecord, Outcome, PairRecord, read_records
from harness.systems.engine import EngineSystem

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

SECRET = "the bridge is closed on Monday"
TRAFFIC = (
    {"task": "embed", "prompts": [SECRET, "rain falls", "two and two"]},
    {"task": "score", "prompts": [{"query": "rain?", "document": d} for d in (SECRET, "water")]},
)
PLAIN = 'model = "tiny-qwen3"\n[sizes]\nmax_model_len = 320\nchunk = 8\nmax_num_seqs = 2\n'
BROKEN = '''
from harness.judge.output import Output
from harness.systems.engine import engine

class Off:
    """Our engine, its answers off by a part in a hundred."""
    def __init__(self, inner): self.inner = inner
    def __getattr__(self, name): return getattr(self.inner, name)
    def open(self, cell, settings): return Session(self.inner.open(cell, settings))

class Session:
    def __init__(self, inner): self.inner = inner
    def run(self, case, prompts, **more):
        from dataclasses import replace
        found = self.inner.run(case, prompts, **more)
        off = tuple(Output.of(o.data * o.data.dtype.type(1.01)) for o in found.outputs)
        return replace(found, outputs=off)

def make(assignment): return Off(engine(assignment))
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARITY_HOME", str(tmp_path / "home"))
    Path("traffic.jsonl").write_text("\n".join(json.dumps(case) for case in TRAFFIC))
    Path("prod.toml").write_text(PLAIN)
    Path("same.toml").write_text(PLAIN)
    Path("chunked.toml").write_text(PLAIN + '[cell]\nchunk = "chunked"\n')
    Path("off.toml").write_text('system = "off.py:make"\n' + PLAIN)
    Path("off.py").write_text(BROKEN)
    return tmp_path


def compare(candidate: str, *more: str) -> int:
    command = ["run", "--baseline", "prod.toml", "--candidate", candidate]
    return run_app([*command, "--cases", "traffic.jsonl", *more])


def pairs(place: Path) -> list[PairRecord]:
    (folder,) = (place / "home" / "runs").iterdir()
    return [r for r in read_records(folder) if isinstance(r, PairRecord)]


def test_a_chunked_canary_agrees_and_is_attested(place: Path) -> None:
    assert compare("chunked.toml") == 0
    assert {pair.outcome for pair in pairs(place)} == {Outcome.PASS}
    assert {pair.axes for pair in pairs(place)} == {("chunk",)}


def test_a_switch_that_does_not_act_is_vacuous(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = EngineSystem.open
    monkeypatch.setattr(
        EngineSystem,
        "open",
        lambda self, cell, settings: honest(self, {**cell, "chunk": "whole"}, settings),
    )
    assert compare("chunked.toml") == 3
    assert all("chunk=chunked did not take effect" in pair.reason for pair in pairs(place))


def test_a_wrong_canary_fails_and_says_how_far(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("off.toml", "--threshold", "0.5") == 1
    by_task = {pair.task: pair for pair in pairs(place)}
    assert {pair.outcome for pair in by_task.values()} == {Outcome.FAIL}
    value = by_task["embed"].measurements[0].value
    assert 0.009 < value < 0.011
    assert "scores land on the other side of the threshold" in capsys.readouterr().out
    crossed = [m for m in by_task["score"].measurements if m.metric == "crossed_threshold"]
    assert len(crossed) == 1


def test_a_users_own_bound_is_taken(place: Path) -> None:
    assert compare("off.toml", "--within", "0.05") == 0


def test_a_dead_server_is_an_error_and_untestable_for_a_bisection(place: Path) -> None:
    url = "http://127.0.0.1:9"
    assert compare(url, "--model", "tiny-qwen3") == 2
    assert all("cannot be reached" in pair.reason for pair in pairs(place))
    assert compare(url, "--model", "tiny-qwen3", "--bisect") == 125


def test_redacted_records_hold_no_prompt(place: Path) -> None:
    assert compare("same.toml", "--redact") == 0
    (folder,) = (place / "home" / "runs").iterdir()
    for file in folder.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file
    (embed,) = (r for r in read_records(folder) if isinstance(r, CaseRecord) and r.task == "embed")
    texts = [prompt["text"] for prompt in embed.case["prompts"]]
    assert len(set(texts)) == 3
    assert all(text.startswith("redacted-") for text in texts)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model = 'tiny-qwen3'\ncolour = 1\n", "unknown key ['colour']"),
        ("system = 'engine'\n", "which model?"),
        (PLAIN + "[cell]\ndp = 2\n", "unknown axis 'dp'"),
        (PLAIN + "[cell]\npp = 3\n", "pp='3' is unknown"),
        ("model = 'tiny-qwen3'\n[sizes]\nchunk = 'x'\n", "whole numbers"),
        ("model = ", "cannot read a deployment"),
    ],
)
def test_a_bad_file_is_one_message(
    place: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.toml").write_text(text)
    assert compare("bad.toml") == 2
    assert told in capsys.readouterr().err


def test_bisection_tells_good_bad_and_untestable(place: Path) -> None:
    assert compare("same.toml", "--bisect") == 0
    assert compare("off.toml", "--bisect") == 1
    assert compare("absent.toml", "--bisect") == 125

"""Anyone's faults: the documents' own example is found, and a bad file is told as it is.

Passes wrongly if the clean engine were killed as well, or the file's fault never planted. Ruled out
by suites/meta/test_suites_can_fail.py: `a-files-faults-are-not-planted`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli.errors import UsageError
from harness.cli.fault_files import faults_from
from harness.faults import FAULTS
from harness.trials.bench import TrialBench
from harness.trials.kills import KillBudget, Task, judge_fault

ROOT = Path(__file__).parents[3]
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The worked example, as the document shows it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (code,) = CODE.findall((ROOT / "docs" / "faults.md").read_text())
    path = tmp_path / "outside_examples.py"
    path.write_text(code)
    return path


@pytest.mark.xdist_group("tiny-qwen3")
def test_the_documented_fault_is_new_and_killed(example: Path, tmp_path: Path) -> None:
    (fault,) = faults_from(example)
    assert fault.name not in FAULTS
    assert fault.plugin == "outside_examples:long_prompts_backwards"
    bench = TrialBench("tiny-qwen3", tmp_path / "run")
    try:
        budget = KillBudget(cases=6, at_least=1, clean_cases=1, control_cases=1)
        task = Task(
            name=fault.name, plugin=fault.plugin, checkpoint="tiny-qwen3", seed=0, budget=budget
        )
        kill = judge_fault(bench, task)
        assert kill.killed
        assert kill.by.get("exact", 0) > 0, "the stages differ, and nothing else may"
        clean = judge_fault(bench, Task(**{**_fields(task), "plugin": ""}))
        assert not clean.killed
        assert clean.pairs > 10
    finally:
        bench.close()


def _fields(task: Task) -> dict[str, object]:
    return {name: getattr(task, name) for name in Task.__slots__}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "declares no fault"),
        ("raise RuntimeError('no')\n", "cannot be imported: RuntimeError: no"),
        ("def broken(:\n", "cannot be imported: SyntaxError"),
    ],
)
def test_a_bad_file_is_told_as_it_is(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "outside_bad.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=told):
        faults_from(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no file .*nowhere\.py"):
        faults_from(tmp_path / "nowhere.py")

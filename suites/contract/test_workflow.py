"""The workflow's own steps, run here by the script that reads the same file.

Passes wrongly if the script ran nothing and called every step ok, or took any command for one that
exists. Ruled out by `test_a_failure_stops_all_but_what_always_runs` and
suites/meta/test_documents.py::test_a_command_that_does_not_exist_is_seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from suites.meta.test_documents import mistakes
from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import CHECKPOINTS, RecordedRun

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci/run_workflow.py"
WORKFLOW = ROOT / ".github/workflows/parity.yml"
GITLAB = ROOT / ".ci/gitlab.yml"


def script(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PARITY_HOME": str(cwd / ".parity")},
        capture_output=True,
        text=True,
        check=False,
    )


def workflow(folder: Path, *steps: dict[str, object]) -> Path:
    path = folder / "workflow.yml"
    path.write_text(yaml.safe_dump({"env": {"WHO": "all"}, "jobs": {"j": {"steps": [*steps]}}}))
    return path


def endings(told: str) -> list[str]:
    return [line[:18].strip() for line in told.splitlines()[-99:] if len(line) > 18]


def test_steps_run_in_order_with_the_environment(tmp_path: Path) -> None:
    path = workflow(
        tmp_path,
        {"uses": "actions/checkout@v4"},
        {"run": 'echo "1 $WHO $MORE" >> log', "env": {"MORE": "here"}},
        {"run": "false | true", "continue-on-error": True},
        {"run": "echo 2 >> log\necho '# done' >> $GITHUB_STEP_SUMMARY"},
    )
    done = script("j", "--file", str(path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text() == "1 all here\n2\n"
    assert endings(done.stdout)[-4:] == ["not here", "ok", "failed, tolerated", "ok"]
    assert "--- job summary\n# done\n" in done.stdout


def test_a_failure_stops_all_but_what_always_runs(tmp_path: Path) -> None:
    path = workflow(
        tmp_path,
        {"run": "exit 3", "id": "first"},
        {"run": "echo never >> log"},
        {"run": "echo always >> log", "if": "${{ !cancelled() }}"},
        {"run": "echo remote >> log", "if": "always() && github.ref == 'refs/heads/main'"},
        {
            "uses": "x/upload@v1",
            "if": "always()",
            "with": {"path": "a\nb", "if-no-files-found": "error"},
        },
    )
    done = script("j", "--file", str(path), cwd=tmp_path)
    assert done.returncode == 1
    assert (tmp_path / "log").read_text() == "always\n"
    assert endings(done.stdout)[-5:] == ["failed", "skipped", "ok", "skipped", "failed"]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"run": "echo ${{ secrets.KEY }}"}, "expression in"),
        ({"run": "true", "if": "github.actor == 'me'"}, "condition \"github.actor == 'me'\""),
    ],
)
def test_what_is_not_understood_is_an_error_and_nothing_runs(
    tmp_path: Path, step: dict[str, object], told: str
) -> None:
    path = workflow(tmp_path, {"run": "echo ran >> log"}, step)
    done = script("j", "--file", str(path), cwd=tmp_path)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "log").exists()


def test_unknown_names_are_told_the_valid_ones(tmp_path: Path) -> None:
    assert "valid: check, parity, pages" in script("no-such", cwd=tmp_path).stderr
    told = script("parity", "--only", "no-such", "--dry-run", cwd=tmp_path).stderr
    assert "valid: ['gate', 'judge', 'keep', 'report']" in told


@pytest.mark.parametrize("job", ["check", "parity", "pages"])
def test_every_job_of_ours_is_understood(tmp_path: Path, job: str) -> None:
    done = script(job, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_what_the_steps_call_exists() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    lines = [s["run"] for job in jobs.values() for s in job["steps"] if "run" in s]
    lines += yaml.safe_load(GITLAB.read_text())["parity"]["script"]
    text = "\n".join(lines).replace('"${against[@]}"', "").replace(" || true", "")
    assert "make parity" in text
    assert "parity gate" in text
    assert not mistakes(f"```sh\n{text}\n```")


@pytest.mark.parametrize(("name", "code"), [("clean", 0), ("failing", 1)])
def test_report_and_gate_run_as_they_do_in_ci(tmp_path: Path, name: str, code: int) -> None:
    """The two steps after a run, from the file, on a recorded run."""
    made = (
        clean_run(num_cases=2)
        if name == "clean"
        else failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    )
    install(tmp_path, made)
    done = script("parity", "--only", "report", "gate", cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    names = {p.name for p in (tmp_path / "report").iterdir()}
    assert names == {"report.html", "summary.md", "junit.xml", "verdict.json"}
    verdict = json.loads((tmp_path / "report/verdict.json").read_text())
    assert verdict["passed"] == (code == 0)
    assert ("::error title=" in done.stdout) == (code == 1)
    assert "--- job summary\n## " in done.stdout


def install(folder: Path, recorded: RecordedRun) -> None:
    """A run, and a `.venv/bin/parity` that runs this tree."""
    recorded.write(folder / ".parity" / "runs" / "one")
    command = folder / ".venv" / "bin" / "parity"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m harness "$@"\n')
    command.chmod(0o755)
    (folder / "parity.toml").write_text("version = 1\n[limits]\nallow_plants = true\n")

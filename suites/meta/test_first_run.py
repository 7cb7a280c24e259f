"""The newcomer's figures in the README are those that were measured, and nobody's else.

Passes wrongly if a figure that was typed in, or one of a step that failed, passed for a measured
one. Ruled out by `test_a_figure_that_was_typed_in_is_seen` and
`test_a_step_that_fails_is_no_figure`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def first_run() -> ModuleType:
    """docs/ is no package: the script is loaded from its path."""
    spec = importlib.util.spec_from_file_location("first_run", ROOT / "docs/first_run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["first_run"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class Newcomer:
    """Owns: what was asked of the machine; every command ends as `codes` says, 0 by default."""

    def __init__(self, codes: Mapping[str, int] | None = None, *, reports: bool = True) -> None:
        self.codes, self.reports = codes or {}, reports
        self.commands: list[list[str]] = []
        self.environments: list[Mapping[str, str]] = []

    def __call__(self, command: Sequence[str], where: Path, env: Mapping[str, str]) -> int:
        self.commands.append(list(command))
        self.environments.append(env)
        if "smoke" in command and self.reports:
            report = Path(env["PARITY_HOME"]) / "runs" / "one" / "report.html"
            report.parent.mkdir(parents=True)
            report.write_text("<!doctype html>")
        return self.codes.get(command[0], 0)


def measurement(first_run: ModuleType, *steps: Any) -> Any:
    """These steps, measured nowhere."""
    return first_run.Measurement(
        date="2026-11-30",
        commit="abc1234",
        machine="a CPU",
        packages="torch 9",
        load=0.1,
        cores=2,
        steps=steps,
    )


def test_the_readme_says_what_was_measured(first_run: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    expected = first_run.section(first_run.recorded())
    assert first_run.written(readme, expected) == readme, "run `make first-run`; type no figure in"


def test_a_figure_that_was_typed_in_is_seen(first_run: ModuleType) -> None:
    step = first_run.Step(name="clone", command="git clone URL", seconds=61.0)
    measured = measurement(first_run, step)
    text = first_run.section(measured)
    honest = f"{first_run.BEGIN}\n{text}\n{first_run.END}\n"
    assert first_run.written(honest, text) == honest
    typed = honest.replace("1 min 1 s", "9.0 s")
    assert typed != honest
    assert first_run.written(typed, text) != typed


def test_the_path_is_a_newcomers(
    first_run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARITY_CACHE", "/full")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    newcomer = Newcomer()
    measured = first_run.measure(tmp_path, python=sys.executable, parity=True, run=newcomer)
    assert [c[0] for c in newcomer.commands] == ["git", "make", ".venv/bin/parity", "make"]
    for environment in newcomer.environments:
        assert "PYTHONPATH" not in environment
        for name in ("PARITY_CACHE", "PARITY_HOME", "PIP_CACHE_DIR"):
            assert Path(environment[name]).is_relative_to(tmp_path)
    assert [(s.name, s.command) for s in measured.steps] == [
        ("clone", "git clone URL"),
        ("environment", "make setup"),
        ("first report", "parity run --profile smoke"),
        ("real checkpoints too", "make parity"),
    ]
    assert str(tmp_path) not in first_run.section(measured)
    assert measured.cores >= 1
    assert "GB" in measured.machine


@pytest.mark.parametrize(
    ("codes", "reports", "told"),
    [
        ({"make": 2}, True, "environment: expected exit code 0, got 2"),
        ({".venv/bin/parity": 1}, True, "first report: expected exit code 0, got 1"),
        ({}, False, "wrote no report.html"),
    ],
)
def test_a_step_that_fails_is_no_figure(
    first_run: ModuleType, tmp_path: Path, *, codes: dict[str, int], reports: bool, told: str
) -> None:
    with pytest.raises(RuntimeError, match=told):
        first_run.measure(
            tmp_path, python=sys.executable, parity=False, run=Newcomer(codes, reports=reports)
        )


def test_figures_are_added_up_and_rounded_once(first_run: ModuleType, tmp_path: Path) -> None:
    steps = tuple(
        first_run.Step(name=name, command=name, seconds=seconds)
        for name, seconds in (("clone", 1.26), ("environment", 119.6), ("first report", 61.0))
    )
    measured = measurement(first_run, *steps)
    text = first_run.section(measured)
    assert text.splitlines()[-3:] == [
        "| clone | `clone` | 1.3 s | 1.3 s |",
        "| environment | `environment` | 2 min 0 s | 2 min 1 s |",
        "| first report | `first report` | 1 min 1 s | 3 min 2 s |",
    ]
    assert "Other work" not in text
    assert "Other work was running (load average 3)" in first_run.section(
        replace(measured, load=3.0)
    )
    path = tmp_path / "record.json"
    path.write_text(json.dumps(asdict(measured)))
    assert first_run.recorded(path) == measured
    assert first_run.recorded(tmp_path / "none.json") is None


def test_only_what_stands_between_the_marks_is_written(first_run: ModuleType) -> None:
    begin, end = first_run.BEGIN, first_run.END
    assert (
        first_run.written(f"a\n{begin}\nold\n{end}\nb\n", "new") == f"a\n{begin}\nnew\n{end}\nb\n"
    )
    for broken in ("no marks", f"{begin}{begin}{end}"):
        with pytest.raises(ValueError, match=r"README.md: expected"):
            first_run.written(broken, "new")

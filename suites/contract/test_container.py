"""The container file, as far as it can be held to account without a container engine.

Passes wrongly if what is sent and what is copied were both read from one of the two files. Ruled
out by suites/meta/test_suites_can_fail.py: `the-image-lacks-the-reports`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTAINERFILE = ROOT / "Containerfile"


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, its arguments) with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined)]


STEPS = instructions(CONTAINERFILE.read_text(encoding="utf-8"))
COPIED = [name for step, rest in STEPS if step == "COPY" for name in rest.split()[:-1]]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what COPY brings, and nothing else of this repository."""
    folder = tmp_path_factory.mktemp("image")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def test_it_runs_as_a_user_and_starts_the_command() -> None:
    assert STEPS[-1] == ("ENTRYPOINT", '["parity"]')
    assert [rest for step, rest in STEPS if step == "USER"] == ["parity"]
    assert all(step.isupper() for step, _ in STEPS)


def test_what_is_sent_is_what_is_copied() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    assert "*" in lines, "everything else stays here"
    assert sorted(kept) == sorted(COPIED)


def test_the_steps_are_shell() -> None:
    for step, rest in STEPS:
        if step == "RUN":
            done = subprocess.run(["sh", "-n", "-c", rest], capture_output=True, check=False)
            assert done.returncode == 0, done.stderr


def test_the_tools_that_a_run_needs_are_installed() -> None:
    (installed,) = [rest for step, rest in STEPS if step == "RUN" and "apt-get install" in rest]
    assert {"g++", "make"} <= set(installed.split())
    python = re.search(r"python:(3\.\d+)-slim", dict(STEPS)["FROM"])
    assert python is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Programming Language :: Python :: {python[1]}" in project["classifiers"]


def test_what_the_project_is_built_from_is_copied(image: Path) -> None:
    settings = tomllib.loads((image / "pyproject.toml").read_text(encoding="utf-8"))
    assert (image / settings["project"]["readme"]).exists()
    for name in settings["project"]["license-files"]:
        assert (image / name).exists()
    packages = settings["tool"]["setuptools"]["packages"]["find"]["include"]
    assert all((image / name.rstrip("*")).is_dir() for name in packages)


def test_the_command_runs_on_what_is_copied_alone(image: Path, tmp_path: Path) -> None:
    """As in the image: from another folder, with runs and checkpoints on the volume."""
    (variables,) = [rest for step, rest in STEPS if step == "ENV"]
    named = dict(part.split("=", 1) for part in variables.split())
    assert set(named) == {"PARITY_HOME", "PARITY_CACHE"}
    volume = {name: value.replace("/data", str(tmp_path)) for name, value in named.items()}
    for command in (["axes", "--json"], ["models", "--json"], ["systems"]):
        done = subprocess.run(
            [sys.executable, "-m", "harness", *command],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(image), **volume},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if "--json" in command:
            assert json.loads(done.stdout)

"""The pytest plug-in in runs of its own: MKL pinned before torch, one seed, the same cases.

Passes wrongly if every run drew the same cases whatever its seed, or torch was never there too
early. Ruled out by `test_seed_decides_the_cases`, which draws others with another seed, and
`test_torch_loaded_too_early_is_refused`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINNED = ("MKL_CBWR", "CI")

PROGRAM = """
import os
from hypothesis import given, settings, strategies as st

@settings(max_examples=5)
@given(number=st.integers(0, 10**9))
def test_draw(number):
    print("drew", number)

def test_mkl():
    print("mkl", os.environ["MKL_CBWR"])
"""


class Run(NamedTuple):
    """What a fresh pytest run under the plug-in printed."""

    drawn: list[str]
    mkl: str
    header: str


def fresh_run(folder: Path, *options: str, **environment: str) -> Run:
    """Run PROGRAM in a process of its own, without what this process has pinned."""
    (folder / "test_it.py").write_text(PROGRAM)
    clean = {k: v for k, v in os.environ.items() if k not in PINNED}
    command = [sys.executable, "-m", "pytest", "-p", "harness.pytest_plugin", "-s", "test_it.py"]
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(
        drawn=re.findall(r"drew (\d+)", done.stdout),
        mkl="".join(re.findall(r"mkl (\S+)", done.stdout)),
        header="".join(re.findall(r"^parity: .*", done.stdout, re.MULTILINE)),
    )


@pytest.mark.nightly
def test_seed_decides_the_cases(tmp_path: Path) -> None:
    first, again = fresh_run(tmp_path), fresh_run(tmp_path)
    assert first.drawn
    assert again.drawn == first.drawn
    other = fresh_run(tmp_path, "--parity-seed=7")
    assert other.drawn != first.drawn
    assert "seed 0 (again with --parity-seed=0), hypothesis profile parity," in first.header
    assert "seed 7 (again with --parity-seed=7), hypothesis profile parity," in other.header


@pytest.mark.nightly
def test_ci_fixes_the_cases_unless_a_seed_is_given(tmp_path: Path) -> None:
    first, again = fresh_run(tmp_path, CI="true"), fresh_run(tmp_path, CI="true")
    assert first.drawn
    assert again.drawn == first.drawn
    assert "hypothesis profile parity-ci," in first.header
    assert fresh_run(tmp_path, "--parity-seed=7", CI="true").drawn != first.drawn


def test_mkl_is_pinned_unless_the_caller_chose(tmp_path: Path) -> None:
    assert fresh_run(tmp_path).mkl == "AUTO,STRICT"
    assert fresh_run(tmp_path, MKL_CBWR="COMPATIBLE").mkl == "COMPATIBLE"


def test_torch_loaded_too_early_is_refused() -> None:
    # What the plug-in can see is that a module of that name is loaded; which one costs seconds.
    loaded_first = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"
    done = subprocess.run(
        [sys.executable, "-c", f"{loaded_first}\nimport harness.pytest_plugin"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "MKL_CBWR"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "expected MKL_CBWR=AUTO,STRICT to be set before torch is imported" in done.stderr

"""The pytest plug-in in a run of its own: MKL pinned before torch, one seed, the same cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PINNED = ("MKL_CBWR", "CI")

DRAWS = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=5)
@given(number=st.integers(0, 10**9))
def test_draw(number):
    print("drew", number)
"""


def run_pytest(
    folder: Path, source: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `source` as a test module under the plug-in, without what this run pinned itself."""
    (folder / "test_it.py").write_text(source)
    clean = {k: v for k, v in os.environ.items() if k not in PINNED}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "harness.pytest_plugin",
            "-s",
            "test_it.py",
            *options,
        ],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def draws(folder: Path, *options: str, **environment: str) -> list[str]:
    """The numbers that a property test draws in a fresh run."""
    done = run_pytest(folder, DRAWS, *options, **environment)
    assert done.returncode == 0, done.stdout
    numbers: list[str] = re.findall(r"drew (\d+)", done.stdout)
    assert numbers, done.stdout
    return numbers


def test_seed_decides_the_cases(tmp_path: Path) -> None:
    first = draws(tmp_path, "--parity-seed=7")
    assert draws(tmp_path, "--parity-seed=7") == first
    assert draws(tmp_path, "--parity-seed=8") != first


def test_default_is_deterministic(tmp_path: Path) -> None:
    assert draws(tmp_path) == draws(tmp_path)


def test_a_seed_is_obeyed_in_ci(tmp_path: Path) -> None:
    fixed = draws(tmp_path, CI="true")
    assert draws(tmp_path, CI="true") == fixed
    assert draws(tmp_path, "--parity-seed=7", CI="true") != fixed


def test_header_names_the_seed(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "def test_it(): pass", "--parity-seed=7")
    assert "parity: seed 7 (again with --parity-seed=7)" in done.stdout


@pytest.mark.parametrize(("given", "seen"), [(None, "AUTO,STRICT"), ("COMPATIBLE", "COMPATIBLE")])
def test_mkl_is_pinned_unless_the_caller_chose(
    tmp_path: Path, given: str | None, seen: str
) -> None:
    source = "import os\ndef test_it(): print('mkl', os.environ['MKL_CBWR'])"
    environment = {} if given is None else {"MKL_CBWR": given}
    assert f"mkl {seen}\n" in run_pytest(tmp_path, source, **environment).stdout


def test_torch_loaded_too_early_is_refused() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "MKL_CBWR"}
    done = subprocess.run(
        [sys.executable, "-c", "import torch, harness.pytest_plugin"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "expected MKL_CBWR=AUTO,STRICT to be set before torch is imported" in done.stderr

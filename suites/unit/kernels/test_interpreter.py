"""Runs `suites/kernels` in Triton's interpreter, in a process of its own.

Passes wrongly if the kernels' suite ran no test and ended well. Ruled out by
suites/meta/test_suites_can_fail.py: `kernels-are-left-out-in-the-interpreter`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KERNELS = ("add_rms_norm", "attention", "linear", "max_sim", "rms_norm", "rotate", "segment_mean")
"""What the table of errors has a row for."""


def run(**environment: str) -> str:
    """pytest's output on the kernels' suite; its failure is ours."""
    command = [sys.executable, "-m", "pytest", "suites/kernels", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    print(done.stdout[-6000:], done.stderr[-2000:])  # noqa: T201 - what a failure is read from
    assert done.returncode in (0, 5), f"pytest ended with {done.returncode}"
    return done.stdout


def test_kernels_agree_with_their_references_in_the_interpreter() -> None:
    out = run(TRITON_INTERPRET="1")
    assert "suites/kernels on cpu" in out
    counts = dict(re.findall(r"(\d+) (passed|failed|skipped|error)", out))
    assert set(counts.values()) == {"passed"}, counts
    told = out.partition("Errors of the kernels on cpu")[2]
    for kernel in KERNELS:
        assert re.search(rf"{kernel} +│ float32 +│ [1-9]", told), kernel


def test_where_they_cannot_run_they_are_left_out_aloud() -> None:
    out = run(TRITON_INTERPRET="0")
    assert "suites/kernels left out: no GPU" in out


pytestmark = pytest.mark.timeout(300)

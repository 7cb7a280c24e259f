"""Checks spread over two pytest-xdist workers give the verdicts of the same tests in one process.

Passes wrongly if one worker had done everything, or nothing was judged. Ruled out by
`test_two_workers_give_the_verdicts_of_one_process`, which reads the workers' names and the seeds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.record import PairRecord, read_manifest, read_records
from suites.contract.sessions import TEST_TIMEOUT_S

ROOT = Path(__file__).resolve().parents[2]

TESTS = """
import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("seed", [3, 4])
def test_the_engine(parity, seed):
    Path(os.environ.get("PYTEST_XDIST_WORKER", "alone")).touch()
    parity.check("engine", cases=2, model="tiny-bert", only=["pp"], seed=seed)
"""


def verdicts_of(folder: Path, *options: str) -> dict[int, Counter[str]]:
    """Seed -> all that was judged, figures included, when the tests run under these options."""
    folder.mkdir()
    (folder / "test_engine.py").write_text(TESTS)
    (folder / "conftest.py").write_text("from harness.pytest_fixture import parity\n")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PARITY_HOME"))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *options,
            "test_engine.py",
        ],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), "PARITY_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        read_manifest(run).seed: Counter(
            json.dumps(
                [r.pair_id, r.outcome, r.reason, r.num_compared, r.measurements], default=str
            )
            for r in read_records(run)
            if isinstance(r, PairRecord)
        )
        for run in (folder / "home" / "runs").iterdir()
    }


@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_two_workers_give_the_verdicts_of_one_process(tmp_path: Path) -> None:
    alone = verdicts_of(tmp_path / "alone", "-n", "0")
    spread = verdicts_of(tmp_path / "spread", "-n", "2")
    assert (tmp_path / "alone" / "alone").exists()
    assert {path.name for path in (tmp_path / "spread").glob("gw*")} == {"gw0", "gw1"}
    assert spread == alone
    assert sorted(alone) == [3, 4]
    assert alone[3] != alone[4]

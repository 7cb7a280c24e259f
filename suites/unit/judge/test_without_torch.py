"""The judge needs no tensor library: a driver, a report or a laptop judges recorded outputs.

Passes wrongly if the process that is asked had not imported the judge. Ruled out by
suites/meta/test_suites_can_fail.py: `the-judge-loads-torch`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MODULES = ("harness.judge", "harness.relations", "harness.campaign.rejudge", "harness.axes")


def test_judging_loads_neither_torch_nor_transformers() -> None:
    code = (
        f"import sys, {', '.join(MODULES)}\n"
        "print(sorted({'torch', 'transformers', 'engine'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"

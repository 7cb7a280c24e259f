"""A trial that was stopped goes on: results are kept line by line.

Passes wrongly if results were remembered by the object and not by its file, or not at all. Ruled
out by suites/meta/test_suites_can_fail.py: `results-are-not-kept`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.record import RecordError
from harness.trials.ledger import Ledger


def test_results_are_read_back(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "new" / "a.jsonl")
    ledger.append({"fault": "x", "seed": 1})
    again = Ledger(ledger.path)
    assert again.rows == ({"fault": "x", "seed": 1},)
    assert again.holds(fault="x", seed=1)
    assert not again.holds(fault="x", seed=2)


def test_a_half_written_line_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"seed": 1}\n{"seed": 2, "ca')
    ledger = Ledger(path)
    assert ledger.rows == ({"seed": 1},)
    ledger.append({"seed": 2})
    assert Ledger(path).rows == ({"seed": 1}, {"seed": 2})


def test_a_damaged_line_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"seed": 1}\nnonsense\n{"seed": 3}\n')
    with pytest.raises(RecordError, match=r"a\.jsonl line 2 is not JSON"):
        Ledger(path)

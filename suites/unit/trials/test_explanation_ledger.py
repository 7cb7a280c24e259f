"""Parts of a trial of explanations, put together, are told as one, and nothing is run for it.

Passes wrongly if the ledger were not read, or a result from before shrinks were counted passed for
one of no engine call. Ruled out by `test_what_an_old_result_does_not_say_is_told_as_unknown` and
suites/meta/test_suites_can_fail.py: `what-is-done-is-run-again`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli.trial import app, told_shrinks
from harness.trials import bench
from harness.trials.ledger import Ledger


def row(seed: int, **more: Any) -> dict[str, Any]:
    return {
        "seed": seed,
        "plugin": "m:layer1",
        "order": 1,
        "exposed": True,
        "cases": 1,
        "axes_exact": True,
        "minimal": True,
        "localised": True,
        "layer_off": 0,
        "tokens_over": 0,
        "calls": 50 + seed,
        "said": "x",
        **more,
    }


def test_merged_parts_are_told_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise AssertionError("a trial that is complete opened a bench")

    monkeypatch.setattr(bench, "TrialBench", none)
    ledger = Ledger(tmp_path / "all.jsonl")
    for seed in (3, 1, 2, 2, 9):  # 2 in both parts, 9 of no seed that is asked for
        ledger.append(row(seed, shrinks=[10 * seed]))
    asked = ["explanation", "--from", "1", "--seeds", "3", "--ledger", str(ledger.path)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "engine calls of a shrink alone: median 20, most 30, of 3" in result.output


def test_what_an_old_result_does_not_say_is_told_as_unknown() -> None:
    new, old, hidden = row(1, shrinks=[4, 8]), row(2), row(3, exposed=False)
    told = "engine calls of a shrink alone: "
    assert told_shrinks([new, old, hidden]) == (
        f"{told}median 6, most 8, of 2; unknown of 1 older results"
    )
    assert told_shrinks([hidden]) == f"{told}none"

"""Every figure that the judge measures has its meaning in the report.

Passes wrongly if the names were collected from the table of meanings instead of the judge's code.
Ruled out by suites/meta/test_suites_can_fail.py: `a-metric-has-no-meaning`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from harness.judge.output import OutputKind
from harness.record import DriftRecord, Measurement, Outcome, Tier
from reports.html.render import render_text
from reports.load import load_run
from reports.view.metrics import MEANINGS, explained, meaning
from suites.unit.reports.fixtures import clean_run

ROOT = Path(__file__).resolve().parents[3]


def measured_names() -> set[str]:
    """Names that stand in the judge's code, and those that a kind of output gives its error."""
    named = re.compile(r'Measurement\(\s*metric="(\w+)"')
    files = [*(ROOT / "harness/judge").glob("*.py"), *(ROOT / "harness/campaign").glob("*.py")]
    found = {name for path in files for name in named.findall(path.read_text(encoding="utf-8"))}
    return found | {kind.metric for kind in OutputKind}


def test_no_name_is_without_a_meaning() -> None:
    names = measured_names()
    assert {"relative_l2", "oracle_error", "rank_inversions", "similarity_drift"} <= names
    assert sorted(names - set(MEANINGS)) == []
    assert all(told.endswith(".") and len(told) < 100 for told in MEANINGS.values())


def test_only_what_was_measured_is_explained(tmp_path: Path) -> None:
    run = load_run(clean_run(num_cases=1).write(tmp_path))
    own = Measurement(metric="of_another", value=1.0, bound=2.0)
    pairs = (replace(run.pairs[0], measurements=(own, replace(own, metric="relative_l2"))),)
    assert [name for name, _ in explained(replace(run, pairs=pairs))] == ["relative_l2"]
    assert meaning("of_another") == ""
    assert "of_another" in render_text(replace(run, pairs=pairs))


def test_errors_that_lean_are_shown_with_their_budget(tmp_path: Path) -> None:
    run = load_run(clean_run(num_cases=1).write(tmp_path))
    assert "Do the errors lean one way?" not in render_text(run)
    leaning = DriftRecord(
        checkpoint="tiny-qwen3",
        axis="chunk",
        tier=Tier.REORDERED,
        metric="norm",
        outcome=Outcome.FAIL,
        reason="norm drifts along chunk",
        samples=38,
        mean=0.7,
        low=0.6,
        high=0.8,
        budget=0.5,
    )
    page = render_text(replace(run, drifts=(leaning,)))
    row = page[page.index("Do the errors lean one way?") :]
    assert "0.6 to 0.8" in row
    assert "-0.5 to 0.5" in row
    assert row.index("FAIL") < row.index("0.6 to 0.8")

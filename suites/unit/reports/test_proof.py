"""What a run claims to prove: each claim has its count, and none is made without one.

Passes wrongly if the runs whose claims are counted held no failure. Ruled out by
suites/meta/test_suites_can_fail.py: `failures-are-claimed-to-agree`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.record import Comparison, Outcome, Tier
from reports.html.render import render_text
from reports.load import load_run
from reports.view.page import build_page
from reports.view.proof import proof
from suites.unit.reports.fixtures import clean_run, failing_run
from suites.unit.reports.parts import CHECKPOINTS


def test_every_claim_has_its_count(tmp_path: Path) -> None:
    run = load_run(clean_run(num_cases=2).write(tmp_path))
    across = [
        p
        for p in run.pairs
        if p.outcome is Outcome.PASS and p.comparison in (Comparison.BASELINE, Comparison.EDGE)
    ]
    exact = sum(p.tier is Tier.EXACT for p in across)
    oracle = sum(p.comparison is Comparison.ORACLE for p in run.pairs)
    told = proof(run)
    assert told[0].startswith(f"{len(across):,} comparisons of two ways of running agree, over ")
    assert told[1].startswith(f"{exact:,} of them agree to the last bit")
    assert "every switch that differs" in told[2]
    assert told[3].startswith(f"{oracle:,} answers of the plainest way agree")


def test_what_was_not_compared_is_not_claimed(tmp_path: Path) -> None:
    run = load_run(clean_run(num_cases=2).write(tmp_path))
    bare = tuple(
        replace(p, tier=Tier.KERNEL) for p in run.pairs if p.comparison is not Comparison.ORACLE
    )
    told = " ".join(proof(replace(run, pairs=bare)))
    assert "last bit" not in told
    assert "64-bit" not in told
    nothing = tuple(replace(p, outcome=Outcome.VACUOUS) for p in run.pairs)
    assert proof(replace(run, pairs=nothing)) == ()


def test_ways_that_fail_are_not_among_those_that_agree(tmp_path: Path) -> None:
    """S1-like: chunked and compiled together fail, 4 cells of 16 and the 8 edges into them."""
    one = failing_run(num_cases=3, checkpoints=CHECKPOINTS[:1])
    run = load_run(one.write(tmp_path))
    bad = {p.case_id for p in run.pairs if p.outcome is Outcome.FAIL}
    only = replace(run, pairs=tuple(p for p in run.pairs if p.case_id in bad))
    assert "over 2 cases: 12 ways, the baseline among them, and 24 edges" in proof(only)[0]


def test_causes_are_named_once_and_lead_to_the_worst(tmp_path: Path) -> None:
    run = load_run(failing_run(num_cases=3).write(tmp_path))
    page = build_page(run)
    (cause,) = page.causes
    assert cause.fails_when == "Fails when chunk=chunked AND compile=compiled."
    assert cause.findings == len(page.findings) == 2
    assert cause.anchor == page.findings[0].anchor
    text = render_text(run)
    assert text.index('class="causes"') < text.index("What this red proves")
    assert 'class="causes"' not in render_text(replace(run, findings=()))

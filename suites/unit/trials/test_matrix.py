"""The kill matrix as data: what is counted, what is counted apart, what does not pass.

Passes wrongly if a fault could be excused by calling it equivalent. Ruled out by
suites/meta/test_suites_can_fail.py: `what-changes-nothing-is-never-refuted`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.faults import FAULTS
from harness.record import Comparison, Outcome, PairRecord, Tier
from harness.trials.catalogue import kill_tasks, reasons
from harness.trials.kills import BUDGETS, checks_of
from harness.trials.matrix import CLEAN, Kill, KillMatrix

SAME = ("same", "bfloat16")


def kill(name: str, dtype: str = "float32", **by: int) -> Kill:
    return Kill(
        name=name,
        checkpoint="c",
        killed=bool(by),
        cases=1,
        seconds=0.0,
        by=by,
        pairs=9,
        dtype=dtype,
        compared=3 if by else 0,
        called={"bitwise": 3 if by else 0},
    )


def matrix(*results: Kill) -> KillMatrix:
    return KillMatrix.of(
        [kill(CLEAN), *results], chosen=["found", "same"], controls=[], reasons={SAME: "why"}
    )


def test_what_is_no_defect_is_counted_apart_and_refuted_if_it_is_seen() -> None:
    good = matrix(kill("found", exact=1), kill("same", exact=2), kill("same", "bfloat16"))
    assert good.passes
    assert matrix(kill("found", exact=1), replace(kill("same", "bfloat16"), compared=1)).passes
    assert [(k.name, k.dtype) for k in good.kills] == [("found", "float32"), ("same", "float32")]
    (told,) = good.to_json()["equivalents"]
    assert (told["name"], told["dtype"], told["reason"], told["refuted"]) == (*SAME, "why", False)
    changed = kill("same", "bfloat16", exact=1)
    lost = replace(kill("same", "bfloat16"), lost="it died")
    for refuted in (changed, lost, replace(lost, lost="", pairs=0)):
        bad = matrix(kill("found", exact=1), refuted)
        assert [e.kill for e in bad.refuted] == [refuted]
        assert not bad.passes


def test_each_fault_tells_its_checks_and_the_rules() -> None:
    (told,) = matrix(kill("found", exact=1, relation=2)).to_json()["faults"]
    assert told["by"] == {"exact": 1, "relation": 2}
    assert (told["compared"], told["rules"], told["dtype"]) == (3, {"bitwise": 3}, "float32")


@pytest.mark.parametrize("by", [{"error": 1}, {}], ids=["an error", "nothing compared"])
def test_a_clean_engine_that_shows_nothing_does_not_pass(by: dict[str, int]) -> None:
    clean = replace(kill(CLEAN), by=by, killed=False, pairs=len(by))
    found = KillMatrix.of([clean, kill("found", exact=1)], chosen=["found"], controls=[])
    assert found.unjudged == (clean,)
    assert not found.passes


@pytest.mark.parametrize(
    ("comparison", "check"),
    [
        (Comparison.RELATION, "relation"),
        (Comparison.ORACLE, "oracle"),
        (Comparison.EDGE, "exact"),
    ],
)
def test_a_comparison_goes_by_its_check(comparison: Comparison, check: str) -> None:
    pair = PairRecord(
        pair_id="p",
        case_id="c",
        checkpoint="tiny",
        task="embed",
        comparison=comparison,
        axes=(),
        a="a",
        b="b",
        cell_a={},
        cell_b={},
        settings={},
        tier=Tier.EXACT,
        outcome=Outcome.FAIL,
        reason="too far",
        num_compared=1,
    )
    assert checks_of(pair) == (check,)


def test_the_catalogue_says_where_a_fault_is_no_defect() -> None:
    chosen = list(FAULTS.values())
    tasks = kill_tasks(chosen, [], BUDGETS["smoke"], 0, ("float32", "bfloat16"))
    planted = {(task.name, task.dtype) for task in tasks}
    assert set(reasons(chosen)) <= planted
    assert all(reasons(chosen).values())
    assert not [key for key in reasons(chosen) if key[1] == "float32"]

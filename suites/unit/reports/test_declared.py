"""What was declared is reached only where it was judged, and what is missing is named.

Passes wrongly if what merely ran counted as judged. Ruled out by
suites/meta/test_suites_can_fail.py: `what-merely-ran-was-reached`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.axes import ALL_AXES
from harness.record import CaseRecord, Comparison, DeclaredRecord, Outcome, PairRecord, Tier
from reports.html.render import render_text
from reports.load import Run
from reports.view.declared import MAX_MISSING, reached, reached_of_all
from reports.view.setup import setup
from suites.unit.reports.parts import manifest

NAME = "tiny-qwen3"
NAMES = ("compile", "async", "buffers")
BASE = {"compile": "eager", "async": "sync"}
DECLARED = DeclaredRecord(
    checkpoint=NAME,
    strength=2,
    axes=NAMES,
    combinations=(
        ("compile=eager", "buffers=fenced"),
        ("compile=compiled", "buffers=ring"),
        ("async=async", "buffers=ring"),
    ),
)
CLASSES = DeclaredRecord(checkpoint=NAME, boundaries=("one token", "length = 31"))


def pair(cell: dict[str, str], outcome: Outcome = Outcome.PASS) -> PairRecord:
    return PairRecord(
        pair_id=str(sorted(cell.items())),
        case_id="c1",
        checkpoint=NAME,
        task="embed",
        comparison=Comparison.BASELINE,
        axes=tuple(cell),
        a="a",
        b="b",
        cell_a=BASE,
        cell_b={**BASE, **cell},
        settings={},
        tier=Tier.KERNEL,
        outcome=outcome,
        reason="",
        num_compared=1,
        measurements=(),
        warnings=(),
    )


def run(*pairs: PairRecord, declared: tuple[DeclaredRecord, ...] = (DECLARED,)) -> Run:
    case = CaseRecord(
        case_id="c1",
        checkpoint=NAME,
        task="embed",
        case={},
        lengths=(1,),
        boundaries=("one token",),
    )
    axes = tuple(ALL_AXES[name].info for name in NAMES)
    return Run(
        manifest=replace(manifest(), axes=axes),
        cases={(NAME, "c1"): case},
        executions={},
        declared=declared,
        pairs=pairs,
    )


RING = {"compile": "compiled", "async": "async", "buffers": "ring"}


def test_a_judged_cell_reaches_all_its_values() -> None:
    (found,) = reached(run(pair(RING)))
    assert (found.judged, found.declared, found.missing, found.cells) == (3, 3, (), 2)
    (told,) = reached_of_all(run(pair(RING)))
    assert told.sentence == (
        "100 % of the declared pairs of values of 3 axes that can start were judged: 3 of 3, over "
        "1 checkpoint in 2 to 2 cells each."
    )


@pytest.mark.parametrize("outcome", [Outcome.VACUOUS, Outcome.INAPPLICABLE, Outcome.ERROR])
def test_what_was_run_and_not_judged_is_missing(outcome: Outcome) -> None:
    (found,) = reached(run(pair(RING, outcome), pair({"compile": "compiled"})))
    assert found.missing == ("compile=compiled, buffers=ring", "async=async, buffers=ring")
    (told,) = reached_of_all(run(pair(RING, outcome), pair({"compile": "compiled"})))
    assert told.sentence.startswith("33.3 % of the declared pairs of values")
    assert told.missing[0] == f"{NAME}: compile=compiled, buffers=ring"


def test_a_class_counts_where_its_case_was_judged() -> None:
    (found,) = reached(run(pair(RING), declared=(CLASSES,)))
    assert (found.what, found.judged, found.missing) == ("boundary classes", 1, ("length = 31",))
    (found,) = reached(run(pair(RING, Outcome.INAPPLICABLE), declared=(CLASSES,)))
    assert found.judged == 0


def test_shards_declare_once_and_nearly_all_is_not_all() -> None:
    many = replace(CLASSES, boundaries=("one token",) * 9999 + ("length = 31",))
    (told,) = reached_of_all(run(pair(RING), declared=(many, many)))
    assert told.sentence.startswith("99.9 % of the declared boundary classes were judged: 9,999 of")
    lost = replace(CLASSES, boundaries=tuple(f"class {i}" for i in range(MAX_MISSING + 2)))
    (told,) = reached_of_all(run(pair(RING), declared=(lost,)))
    assert (len(told.missing), told.more_missing) == (MAX_MISSING, 2)


def test_a_run_that_declared_nothing_tells_nothing() -> None:
    assert reached_of_all(run(pair(RING), declared=())) == ()


def test_what_an_array_covers_is_told_with_the_details_and_not_above_the_verdict() -> None:
    counted = f"{NAME}: 2-way coverage of 3 axes by 4 cells: 3 of 3 combinations of values"
    lost = f"{NAME} array 1/2: its worker died"
    told = replace(run(pair({"compile": "compiled"})), notices=(counted, lost, counted))
    assert (setup(told).notices, setup(told).counts) == ((lost,), (counted,))
    page = render_text(told)
    verdict = page.index('class="verdict')
    assert page.index(lost) < verdict < page.index(counted)
    assert page.count(counted) == 1
    # An older run, or another checkpoint, has it nowhere else.
    for declared in ((), (replace(DECLARED, checkpoint="tiny-bert"),), (CLASSES,)):
        alone = setup(replace(told, declared=declared))
        assert (alone.notices, alone.counts) == ((counted, lost), ())

"""What a finding takes, what hides it, and which findings look like one cause.

Passes wrongly if a switch that could not act on the case was among those that hide the failure.
Ruled out by suites/meta/test_suites_can_fail.py: `idle-switches-hide-a-failure`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness.attribution.probe import PolicyProbe, tell_policies
from harness.attribution.wording import settings_conditions, smallest_case
from harness.record import Comparison, FindingRecord, Measurement, Outcome, PairRecord
from reports.html.render import render_text
from reports.load import Run, load_run
from reports.markdown import markdown
from reports.view.case_index import case_index
from reports.view.conditions import conditions
from reports.view.evidence import oracle, sides
from reports.view.findings import findings
from reports.view.hiding import Hiding, hidden
from reports.view.page import build_page
from reports.view.prompts import agreement
from suites.unit.reports.fixtures import failing_run, needs_chunk_and_compile
from suites.unit.reports.html_reader import read_html
from suites.unit.reports.parts import BASELINE


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(failing_run(num_cases=2).write(tmp_path_factory.mktemp("run")))


# -------------------------------------------------------------------------------------- conditions

SETS = (frozenset({"chunk=chunked"}),)


def probe(policy: str, *sets: set[str], racy: bool = False) -> PolicyProbe:
    settings = {"stream_policy": policy, "inputs": "fenced"}
    made = tuple(frozenset(values) for values in sets)
    return PolicyProbe(settings=settings, sets=made, racy=racy, tries=5)


def test_every_sentence_of_the_search_stands_under_its_word() -> None:
    probes = (
        probe("paced(1)", {"chunk=chunked"}),
        probe("lag(copy@last)", {"chunk=chunked", "pp=2"}),
        probe("immediate"),
        probe("threaded", racy=True),
    )
    settings = {"stream_policy": "lag(compute@last)", "inputs": "ring"}
    plan = [[["0", 0, 16, 17]], [["0", 16, 1, 17]]]
    found = conditions(
        (
            *settings_conditions(settings, 1.3372e-5),
            smallest_case((17,), plan, chunk=16, split=True),
            "token-level output, normalising head",
            *tell_policies(probes, SETS),
            "hidden with normalize=True",
            "shrinking stopped at its budget; a smaller case may exist",
        ),
        any_policy=False,
    )
    assert found.requires == ("lag(compute@last), ring inputs, or one of those below",)
    assert found.also_fails == (
        "paced(1), fenced inputs",
        "lag(copy@last), fenced inputs (only with pp=2)",
    )
    assert found.passes == (
        "threaded, fenced inputs: no failure in 5 tries of each cell",
        "immediate, fenced inputs",
        "with normalize=True",
    )
    assert found.smallest == (
        "1 prompt of 17 tokens, in chunks of 16 + 1 (at most 16 a step)",
        "token-level output, normalising head",
    )
    assert found.notes[0].endswith("were held to 1.34e-5 in the search")
    assert found.notes[1].startswith("shrinking stopped")


def test_a_policy_that_does_not_matter_is_no_requirement() -> None:
    settings = {"stream_policy": "paced(1)", "inputs": "fenced"}
    found = conditions(settings_conditions(settings, 0.0), any_policy=True)
    assert (found.requires, found.also_fails) == ((), ("paced(1), fenced inputs",))


def test_a_sentence_that_is_not_known_is_a_requirement() -> None:
    assert conditions(("3 chunks or more",), any_policy=False).requires == ("3 chunks or more",)


# ------------------------------------------------------------------------------------------ hiding


def with_outcomes(finding: FindingRecord, given: Mapping[str, Outcome]) -> FindingRecord:
    """The outcome of the failing cell once this value is added to it."""
    rows = []
    for row in finding.truth_table:
        added = {f"{a}={v}" for a, v in row.cell.items() if v != BASELINE[a]}
        added -= {"chunk=chunked", "compile=compiled"}
        outcome = given.get(next(iter(added)), row.outcome) if len(added) == 1 else Outcome.PASS
        failing_set = needs_chunk_and_compile(row.cell) and added
        rows.append(replace(row, outcome=outcome) if failing_set else row)
    masks = tuple(sorted(given))
    return replace(finding, truth_table=tuple(rows), masked_by=masks)


def test_only_what_was_judged_hides(failing: Run) -> None:
    given = {"async=async": Outcome.INAPPLICABLE, "pp=2": Outcome.PASS}
    one = with_outcomes(failing.findings[0], given)
    found = hidden(one, BASELINE, ())
    assert [h.value for h in found.by] == ["pp=2"]
    assert found.idle == ("async=async",)


def test_cases_that_fail_all_the_same_are_counted(failing: Run) -> None:
    one = with_outcomes(failing.findings[0], {"pp=2": Outcome.PASS})
    own = [p for p in failing.pairs if p.checkpoint == one.checkpoint]
    (found,) = hidden(one, BASELINE, own).by
    assert found == Hiding(
        value="pp=2", note="in the shrunk case; 1 case of this run fails with it"
    )


# ---------------------------------------------------------------------------------------- grouping


def variant(finding: FindingRecord, policy: str, **changes: object) -> FindingRecord:
    signature = f"checkpoint=c; level=token; kind=difference; sets=s; policy={policy}"
    made = replace(finding, finding_id=f"F-{policy}", signature=signature)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_one_cause_is_led_by_the_finding_of_any_policy(failing: Run) -> None:
    one = failing.findings[0]
    assert one.first_divergence is not None
    elsewhere = replace(one.first_divergence, layer=2)
    run = replace(
        failing,
        findings=(
            variant(one, "paced(1)", worst=2.0),
            variant(one, "any", worst=1.0),
            variant(one, "lag(copy@last)", worst=1.5),
            variant(one, "immediate", worst=3.0, first_divergence=elsewhere),
        ),
    )
    page = build_page(run)
    groups = [(g.lead.finding_id, [v.finding_id for v in g.variants]) for g in page.groups]
    assert groups == [("F-immediate", []), ("F-any", ["F-paced(1)", "F-lag(copy@last)"])]
    assert "4 findings below, 2 causes" in page.verdict.sentence
    (cause,) = page.causes
    assert (cause.findings, cause.anchor) == (4, page.groups[0].lead.anchor)
    text = markdown(run)
    assert text.count("### ✕") == 2
    assert "F-paced(1) (classify, paced(1))" in text


def test_variants_are_folded_and_keep_their_anchors(failing: Run) -> None:
    one = failing.findings[0]
    run = replace(failing, findings=(variant(one, "any"), variant(one, "paced(1)")))
    text = render_text(run)
    page = read_html(text)
    assert page.by_id("finding-F-any")
    assert page.by_id("finding-F-paced-1-")
    assert text.index('id="finding-F-any"') < text.index('class="variants"')
    assert text.index('class="variants"') < text.index('id="finding-F-paced-1-"')
    assert text.index("First difference: ") < text.index('class="counts"')


# ----------------------------------------------------------------------------------- what is named


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (0.0, "is the first that differs; tokens 0 to 127 agree to the last bit"),
        (9e-6, "is the first beyond the bound; tokens 0 to 127 differ only by rounding (at most"),
        (0.5, "is where they part; by the last layer tokens 0 to 127 differ too, by up to 0.5"),
        (math.nan, "is where they part"),
    ],
)
def test_tokens_before_the_first_difference(failing: Run, before: float, words: str) -> None:
    one = failing.findings[0]
    errors = (before, *one.token_errors[0][1:])
    told = agreement(replace(one, token_errors=(errors,)), 0)
    assert told.startswith(f"Token 128 {words}")


def test_sides_are_named_by_what_they_differ_in(failing: Run) -> None:
    pair = next(p for p in failing.pairs if p.comparison is Comparison.BASELINE)
    apart = replace(pair, cell_b={**BASELINE, "compile": "compiled", "pp": "2"})
    assert sides(apart) == ("eager/pp=1", "compiled/pp=2")
    assert sides(replace(pair, cell_b=pair.cell_a)) == ("A", "B")
    measures = (
        Measurement(metric="oracle_error", value=1.0),
        Measurement(metric="oracle_error_reference", value=0.5),
    )
    told = oracle(measures, sides(apart))
    assert told.startswith("Against float64, eager/pp=1 is nearer: eager/pp=1 is 0.5 off")
    assert told.endswith("compiled/pp=2 is 2 times as far.")


def test_all_tasks_are_named_and_what_allows_nothing_is_told(failing: Run) -> None:
    one = failing.findings[0]
    rank = Measurement(metric="rank_inversions", value=2.0, bound=0.0)

    def scored(pair: PairRecord) -> PairRecord:
        if pair.pair_id != one.pairs[0]:
            return pair
        return replace(pair, task="score", measurements=(*pair.measurements, rank))

    run = replace(failing, pairs=tuple(scored(p) for p in failing.pairs))
    view = next(f for f in findings(run) if f.finding_id == one.finding_id)
    assert view.tasks.startswith("classify, ")
    assert "score" in view.tasks
    assert view.also == ("rank changed (0 allowed) in 1 comparison",)


def test_a_case_over_what_allows_nothing_says_so(failing: Run) -> None:
    one = failing.findings[0]
    rank = Measurement(metric="rank_inversions", value=2.0, bound=0.0)
    pairs = tuple(
        replace(p, measurements=(*p.measurements, rank))
        if (p.checkpoint, p.pair_id) == (one.checkpoint, one.pairs[0])
        else p
        for p in failing.pairs
    )
    index = case_index(replace(failing, pairs=pairs), {})
    assert index.lines[0].over == "rank changed (0 allowed)"
    assert index.packed()["rows"][0][5] == "rank changed (0 allowed)"
    assert {line.over for line in index.lines[1:]} == {""}

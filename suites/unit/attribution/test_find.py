"""Findings of a system that is wrong on purpose: sets, masks, shrinking, luck, and what is told.

Passes wrongly if a finding named the cells that fail and never what hides the failure. Ruled out by
suites/meta/test_suites_can_fail.py: `nothing-masks-a-failure`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.attribution import FailureKind, Signature, replay
from harness.attribution.gap import FixedLimits, RunLimits
from harness.attribution.laboratory import Laboratory
from harness.attribution.recorded import grouped
from harness.attribution.sets import cell_of
from harness.axes import baseline
from harness.case import Case, Prompt
from harness.judge.output import Output
from harness.record import FindingRecord, Outcome
from harness.search import Budget
from suites.unit.attribution.toy import (
    CHUNK,
    COPY_LAGS,
    PACED,
    THREADED,
    Situation,
    ToySystem,
    Truth,
    campaign,
    nowhere,
)


def embed(*lengths: int, **options: object) -> Case:
    """One prompt for each length, no two alike."""
    prompts = tuple(
        Prompt(tokens=tuple((31 * i + 7 * n) % 500 + 1 for n in range(length)))
        for i, length in enumerate(lengths)
    )
    return Case(task="embed", prompts=prompts, **options)  # type: ignore[arg-type]


def kind_of(finding: FindingRecord) -> FailureKind:
    return Signature.parse(finding.signature).kind


def lengths_of(finding: FindingRecord) -> list[int]:
    return [len(prompt["tokens"]) for prompt in finding.case["prompts"]]


def conjunction(s: Situation) -> float:
    """Wrong when compiled and chunked, from three chunks on, unless there are two stages."""
    return float(s.on("chunk=chunked", "compile=compiled", "pp=1") and s.chunks >= 3)


def test_a_right_system_is_not_even_asked(tmp_path: Path) -> None:
    run = campaign(tmp_path, ToySystem(), [(embed(40, 9), PACED)])
    before = run.system.runs
    assert run.findings() == []
    assert run.system.runs == before


def test_conjunction_is_named_shrunk_masked_and_localised(tmp_path: Path) -> None:
    run = campaign(tmp_path, ToySystem(conjunction), [(embed(50, 44, 9), PACED)])
    (found,) = run.findings(policies=())
    assert found.minimal_sets == (("chunk=chunked", "compile=compiled"),)
    assert found.masked_by == ("pp=2",)
    assert lengths_of(found) == [2 * CHUNK + 1]
    assert found.title == (
        "embed differs when chunk=chunked AND compile=compiled (stream policy paced(1))"
    )
    assert (
        "smallest case: 1 prompt of 33 tokens, in chunks of 16 + 16 + 1 (at most 16 a step)"
        in found.conditions
    )
    assert len(found.truth_table) == 16
    outcomes = [row.outcome for row in found.truth_table]
    assert outcomes.count(Outcome.FAIL) == 2
    assert found.reproduce == f"parity replay {found.finding_id} --run RUN"
    failed = {pair.pair_id for pair in run.pairs if pair.outcome is Outcome.FAIL}
    assert set(found.pairs) == failed
    first = found.first_divergence
    assert first is not None
    assert (first.step, first.chunk, first.layer, first.token) == (2, 2, 1, 2 * CHUNK)
    assert found.chunk_edges == ((CHUNK, 2 * CHUNK),)
    assert found.worst > found.bound > 0  # type: ignore[operator]


def test_replay_tells_failing_from_fixed(tmp_path: Path) -> None:
    run = campaign(tmp_path, ToySystem(conjunction), [(embed(50), PACED)])
    (found,) = run.findings(policies=())
    assert replay(found, run.system).failing
    assert replay(found, run.system).rows == found.truth_table
    fixed = replay(found, ToySystem())
    assert not fixed.failing
    assert {row.outcome for row in fixed.rows} == {Outcome.PASS, Outcome.INAPPLICABLE}


def test_shrinking_does_not_slip_to_another_bug(tmp_path: Path) -> None:
    """Below 41 tokens the toy has another bug, with a smaller set."""

    def two_bugs(s: Situation) -> float:
        if sum(s.lengths) > 40:
            return float(s.on("chunk=chunked", "pp=2"))
        return float(s.on("pp=2"))

    run = campaign(tmp_path, ToySystem(two_bugs), [(embed(70), COPY_LAGS)])
    (found,) = run.findings()
    assert found.minimal_sets == (("chunk=chunked", "pp=2"),)
    assert lengths_of(found) == [41]


def test_shrinking_checks_the_cells_it_did_not_run(tmp_path: Path) -> None:
    """A further set that only the whole table shows: the search steps back to before it."""

    def hidden(s: Situation) -> float:
        return float(s.on("chunk=chunked") or (sum(s.lengths) < 30 and s.on("pp=2")))

    run = campaign(tmp_path, ToySystem(hidden), [(embed(70), COPY_LAGS)])
    (found,) = run.findings(policies=())
    assert found.minimal_sets == (("chunk=chunked",),)
    assert lengths_of(found)[0] >= 30
    assert not any(
        row.outcome is Outcome.FAIL
        for row in found.truth_table
        if row.cell["pp"] == "2" and row.cell["chunk"] == "whole"
    )


def test_a_plain_failure_stays_plain(tmp_path: Path) -> None:
    """With few tokens the answer is off by a bit only, which an exact edge still sees."""

    def fading(s: Situation) -> float:
        if not s.on("pp=2"):
            return 0.0
        return 1.0 if sum(s.lengths) >= 20 else 1e-7

    run = campaign(tmp_path, ToySystem(fading), [(embed(60), COPY_LAGS)])
    (found,) = run.findings()
    assert lengths_of(found) == [20]


def test_a_difference_that_only_an_exact_edge_sees(tmp_path: Path) -> None:
    """Compiled may be off by rounding, so only the same cell on one stage tells."""

    def rounding(s: Situation) -> float:
        return 1e-7 if s.on("compile=compiled", "pp=2") else 0.0

    run = campaign(tmp_path, ToySystem(rounding), [(embed(20), COPY_LAGS)])
    (found,) = run.findings(policies=())
    assert found.minimal_sets == (("compile=compiled", "pp=2"),)
    assert replay(found, run.system).failing
    assert any("neighbour without pp=2" in row.note for row in found.truth_table)
    assert found.first_divergence is not None, "watched against that neighbour"


def test_cells_replay_the_plan_of_the_cell_that_differs_in_chunk_alone() -> None:
    system = ToySystem()
    laboratory = Laboratory(
        system=system,
        checkpoint="toy",
        limits=FixedLimits(1e-6),
        budget=Budget(calls=0, seconds=0.0),
    )
    cells = [cell_of({"chunk=chunked", "pp=2"}), cell_of({"async=async"})]
    laboratory.table(embed(40), COPY_LAGS, cells, FailureKind.DIFFERENCE)
    free = [cell for cell, given in system.replayed if not given]
    assert free == [baseline(), cell_of({"chunk=chunked"})]
    assert [cell for cell, given in system.replayed if given] == [cells[1], cells[0]]


def test_two_sets_of_one_bug_are_one_finding(tmp_path: Path) -> None:
    def overlap(s: Situation) -> float:
        fits = max(s.lengths) <= CHUNK or not s.on("chunk=chunked")
        unowned = s.case.normalize is False and s.case.task == "token_embed"
        return float(unowned and fits and (s.on("async=async") or s.on("pp=2")))

    case = Case(task="token_embed", normalize=False, prompts=embed(12, 12, 12, 12).prompts)
    run = campaign(tmp_path, ToySystem(overlap), [(case, COPY_LAGS)])
    (found,) = run.findings()
    assert found.minimal_sets == (("async=async",), ("pp=2",))
    assert set(found.masked_by) == {"chunk=chunked", "normalize=True", "task=embed"}
    assert "hidden when every prompt is split over steps" in found.conditions
    assert "token-level output, identity head (normalize=False)" in found.conditions
    assert "policy=any" in found.signature


def test_longer_prompts_that_hide_it_are_not_blamed_on_the_split(tmp_path: Path) -> None:
    def short_only(s: Situation) -> float:
        return float(s.on("pp=2") and max(s.lengths) < 20)

    run = campaign(tmp_path, ToySystem(short_only), [(embed(12, 9), COPY_LAGS)])
    (found,) = run.findings()
    assert found.masked_by == ()


def test_policies_are_told_apart(tmp_path: Path) -> None:
    def lagging(s: Situation) -> float:
        if s.settings["stream_policy"] == "paced(1)":
            return conjunction(s)
        return float(s.on("chunk=chunked") and s.settings["stream_policy"] == "lag(copy@last)")

    run = campaign(tmp_path, ToySystem(lagging), [(embed(70), COPY_LAGS)])
    (found,) = run.findings(
        policies=(COPY_LAGS, PACED, {"stream_policy": "immediate", "inputs": "ring"})
    )
    assert found.minimal_sets == (("chunk=chunked",),)
    assert "does not fail under paced(1), fenced inputs; immediate, ring inputs" in found.conditions
    run = campaign(tmp_path / "b", ToySystem(lagging), [(embed(70), PACED)])
    (found,) = run.findings()
    assert "fails under lag(copy@last), fenced inputs with chunk=chunked" in found.conditions


def test_a_policy_may_need_one_value_more(tmp_path: Path) -> None:
    def paced_needs_async(s: Situation) -> float:
        lags = s.settings["stream_policy"] == "lag(copy@last)"
        return float(s.on("chunk=chunked") and (lags or s.on("async=async")))

    run = campaign(tmp_path, ToySystem(paced_needs_async), [(embed(70), COPY_LAGS)])
    (found,) = run.findings()
    assert "fails under paced(1), fenced inputs only with async=async" in found.conditions


def test_the_same_under_every_policy_is_one_finding(tmp_path: Path) -> None:
    def always(s: Situation) -> float:
        return float(s.on("chunk=chunked", "pp=2"))

    work = [(embed(70), COPY_LAGS), (embed(66, 5), PACED)]
    run = campaign(tmp_path, ToySystem(always), work)
    (found,) = run.findings()
    assert Signature.parse(found.signature).policy == "any"
    failed = {pair.pair_id for pair in run.pairs if pair.outcome is Outcome.FAIL}
    assert set(found.pairs) == failed


def test_hazards_are_a_finding_of_their_own(tmp_path: Path) -> None:
    def race(s: Situation) -> float:
        return float(s.on("chunk=chunked"))

    run = campaign(tmp_path, ToySystem(nowhere, race), [(embed(70), PACED)])
    (found,) = run.findings()
    assert kind_of(found) is FailureKind.HAZARD
    assert found.minimal_sets == (("chunk=chunked",),)
    assert found.metric == "hazards"
    assert "nothing orders" in found.title
    assert replay(found, run.system).failing
    assert not replay(found, ToySystem()).failing


def test_a_race_that_also_shows_is_both(tmp_path: Path) -> None:
    def race(s: Situation) -> float:
        return float(s.on("chunk=chunked"))

    run = campaign(tmp_path, ToySystem(conjunction, race), [(embed(50), PACED)])
    found = {kind_of(f): f for f in run.findings()}
    assert found[FailureKind.HAZARD].minimal_sets == (("chunk=chunked",),)
    raced = {pair.pair_id for pair in run.pairs if "happens-before" in pair.reason}
    assert set(found[FailureKind.HAZARD].pairs) == raced
    assert found[FailureKind.DIFFERENCE].minimal_sets == (("chunk=chunked", "compile=compiled"),)


def test_processes_alone(tmp_path: Path) -> None:
    def apart(s: Situation) -> float:
        return float(s.settings["executor"] == "processes" and sum(s.lengths) > 6)

    run = campaign(tmp_path, ToySystem(apart), [(embed(40), COPY_LAGS)], processes=True)
    (found,) = run.findings()
    assert found.minimal_sets == (("executor=processes",),)
    assert lengths_of(found) == [7]
    assert all(row.cell["executor"] == "processes" for row in found.truth_table)
    assert replay(found, run.system).failing
    assert not replay(found, ToySystem()).failing


class Elsewhere(Truth):
    """An oracle that the baseline disagrees with."""

    def outputs(self, case: Case, prompts: object) -> tuple[Output, ...]:
        found = super().outputs(case, prompts)  # type: ignore[arg-type]
        return tuple(Output.of(o.data + 1e-3) for o in found)


def test_a_wrong_baseline_has_the_empty_set(tmp_path: Path) -> None:
    run = campaign(tmp_path, ToySystem(), [(embed(40), COPY_LAGS)], truth=Elsewhere())
    found = {kind_of(f): f for f in run.findings(oracle=Elsewhere())}[FailureKind.BASELINE]
    assert found.minimal_sets == ((),)
    assert "baseline itself" in found.title
    assert lengths_of(found) == [1]
    assert replay(found, run.system, oracle=Elsewhere()).failing
    assert not replay(found, run.system, oracle=Truth()).failing


def test_a_wrong_baseline_is_no_difference_of_what_has_the_same_bits(tmp_path: Path) -> None:
    """Every answer misses a norm of 1, so every pair FAILs; only the baseline is to blame."""
    case = embed(40, 20, normalize=True)
    run = campaign(tmp_path, ToySystem(broken=lambda _: 1e-2), [(case, COPY_LAGS)])
    failed = {p.pair_id for p in run.pairs if p.outcome is Outcome.FAIL}
    assert len(failed) > 10
    (found,) = run.findings()
    assert (kind_of(found), found.minimal_sets) == (FailureKind.BASELINE, ((),))
    assert set(found.pairs) == failed
    # What really differs is told beside it.
    both = ToySystem(broken=lambda s: 1e-2 if s.cell["pp"] == "1" else 3e-2)
    told = {kind_of(f): f for f in campaign(tmp_path, both, [(case, COPY_LAGS)]).findings()}
    assert set(told) == {FailureKind.BASELINE, FailureKind.DIFFERENCE}
    assert told[FailureKind.DIFFERENCE].minimal_sets == (("pp=2",),)


def test_what_is_left_to_luck_is_repeated(tmp_path: Path) -> None:
    """Each failing cell fails two times out of three; the sets are those of the whole group."""
    luck = random.Random(1)

    def sometimes(s: Situation) -> float:
        return float(conjunction(s) and luck.random() < 2 / 3)

    work = [(embed(50 + n, 9), THREADED) for n in range(4)]
    run = campaign(tmp_path, ToySystem(sometimes), work)
    limits = RunLimits(run.bounds)
    groups = grouped(run.cases, run.pairs, dtype="float32", store=run.store, limits=limits)
    assert len(groups) == 1
    (found,) = run.findings(policies=())
    assert found.minimal_sets == (("chunk=chunked", "compile=compiled"),)
    assert lengths_of(found) == [2 * CHUNK + 1]
    assert any("real concurrency" in condition for condition in found.conditions)


def test_a_failure_by_luck_joins_the_finding_that_replays(tmp_path: Path) -> None:
    luck = random.Random(1)

    def lagging(s: Situation) -> float:
        threaded = s.settings["stream_policy"] == "threaded"
        return float(s.on("chunk=chunked") and not (threaded and luck.random() < 0.5))

    work = [(embed(70), COPY_LAGS), (embed(66, 5), THREADED)]
    run = campaign(tmp_path, ToySystem(lagging), work)
    (found,) = run.findings(policies=(COPY_LAGS, THREADED))
    assert found.minimal_sets == (("chunk=chunked",),)
    failed = {pair.pair_id for pair in run.pairs if pair.outcome is Outcome.FAIL}
    assert set(found.pairs) == failed
    assert "threaded, fenced inputs: failed within 5 tries of each cell" in found.conditions
    assert "pp=2" not in found.masked_by, "what luck hid is no mask"


def test_another_set_seen_by_luck_is_a_finding_of_its_own(tmp_path: Path) -> None:
    def other(s: Situation) -> float:
        threaded = s.settings["stream_policy"] == "threaded"
        return float(s.on("pp=2") if threaded else s.on("chunk=chunked"))

    work = [(embed(70), COPY_LAGS), (embed(66, 5), THREADED)]
    run = campaign(tmp_path, ToySystem(other), work)
    assert {f.minimal_sets for f in run.findings(policies=())} == {
        (("chunk=chunked",),),
        (("pp=2",),),
    }


def test_a_failure_that_watching_hides_is_watched_elsewhere(tmp_path: Path) -> None:
    def lagging(s: Situation) -> float:
        paced = s.settings["stream_policy"] == "paced(1)"
        return 0.0 if paced and s.taps else float(s.on("chunk=chunked"))

    run = campaign(tmp_path, ToySystem(lagging), [(embed(70), PACED)])
    (found,) = run.findings()
    assert found.first_divergence is not None
    assert found.first_divergence.layer == 1
    assert any(c.startswith("localised under lag(copy@last)") for c in found.conditions)
    run = campaign(tmp_path / "alone", run.system, [(embed(70), PACED)])
    (found,) = run.findings(policies=())
    assert found.first_divergence is None
    assert any(c.startswith("not localised") for c in found.conditions)


def test_what_does_not_fail_again_is_reported_as_recorded(tmp_path: Path) -> None:
    run = campaign(tmp_path, ToySystem(conjunction), [(embed(50), PACED)])
    run.system.broken = nowhere
    (found,) = run.findings()
    assert found.minimal_sets == (("chunk=chunked", "compile=compiled"),)
    assert lengths_of(found) == [50]
    assert any("did not fail the same way" in condition for condition in found.conditions)


def test_a_spent_budget_still_reports(tmp_path: Path) -> None:
    run = campaign(tmp_path, ToySystem(conjunction), [(embed(50), PACED)])
    (found,) = run.findings(budget=Budget(calls=0, seconds=0.0))
    assert lengths_of(found) == [50]
    assert len(found.truth_table) == 16
    assert any("budget" in condition for condition in found.conditions)


def test_texts_are_shrunk_as_token_ids(tmp_path: Path) -> None:
    case = Case(task="embed", prompts=(Prompt(text="the quick brown fox " * 4),))
    run = campaign(tmp_path, ToySystem(conjunction), [(case, PACED)])
    (found,) = run.findings(policies=())
    assert lengths_of(found) == [2 * CHUNK + 1]


@pytest.mark.parametrize("normalize", [True, False])
def test_options_that_do_not_matter_are_dropped(tmp_path: Path, *, normalize: bool) -> None:
    case = embed(50, normalize=normalize, arrivals=(0,))
    run = campaign(tmp_path, ToySystem(conjunction), [(case, PACED)])
    (found,) = run.findings(policies=())
    assert set(found.case) == {"task", "prompts"}

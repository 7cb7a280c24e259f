"""Breaks of `suites/unit/trials`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break

BREAKS: Final = (
    Break(
        name="controls-are-not-planted",
        suite="suites/unit/trials/test_controls.py",
        red="test_a_control_changes_bits_where_it_says",
        at="harness.trials.bench:TrialBench.planted",
        instead=instead.value(lambda bench, plugin: nullcontext()),
    ),
    Break(
        name="perturbations-need-no-switch",
        suite="suites/unit/trials/test_perturbation.py",
        red="test_chunk_is_needed_where_it_is_named",
        at="harness.faults.perturbation:Perturbation.touches",
        instead=instead.returns(True),  # noqa: FBT003
    ),
    Break(
        name="results-are-not-kept",
        suite="suites/unit/trials/test_ledger.py",
        red="test_results_are_read_back",
        at="harness.trials.ledger:Ledger.append",
        instead=instead.returns(None),
    ),
    Break(
        name="a-worker-takes-whatever-comes",
        suite="suites/unit/trials/test_spread.py",
        red="test_every_trial_is_taken_once_and_in_order",
        at="harness.trials.spread:Queue.take",
        instead=lambda right: lambda queue, mine: right(queue, None),
    ),
    Break(
        name="what-changes-nothing-is-never-refuted",
        suite="suites/unit/trials/test_matrix.py",
        red="test_what_is_no_defect_is_counted_apart_and_refuted_if_it_is_seen",
        at="harness.trials.matrix:Equivalent.refuted",
        instead=instead.returns(False),  # noqa: FBT003
    ),
    Break(
        name="what-is-done-is-run-again",
        suite="suites/unit/trials/test_explanation_ledger.py",
        red="test_merged_parts_are_told_without_a_run",
        at="harness.trials.ledger:Ledger.holds",
        instead=instead.result(lambda _: False),
    ),
    Break(
        name="a-files-faults-are-not-planted",
        suite="suites/unit/trials/test_fault_files.py",
        red="test_the_documented_fault_is_new_and_killed",
        at="harness.trials.kills:judge_fault",
        instead=lambda right: lambda bench, task: right(bench, replace(task, plugin="")),
    ),
    Break(
        name="plants-stay-in",
        suite="suites/unit/trials/test_catalogue.py",
        red="test_replacing_undoes_in_any_nesting",
        at="harness.faults.base:replace_method",
        instead=instead.result(lambda undo: lambda: None),
    ),
)

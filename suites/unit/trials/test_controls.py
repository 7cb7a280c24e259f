"""Controls: each really changes bits where it says, and nothing where it does not.

Passes wrongly if a control changed nothing, since no alarm is no merit then. Ruled out by
suites/meta/test_suites_can_fail.py: `controls-are-not-planted`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from engine.plugins import load_plugin
from harness.axes import Cell
from harness.case import Case
from harness.checkpoints.catalogue import CHECKPOINTS
from harness.controls import CONTROLS
from harness.controls.base import Control, Where
from harness.faults import FAULTS
from harness.trials.bench import TrialBench
from harness.trials.kills import KillBudget, Task, judge_fault
from harness.trials.matrix import CLEAN, Kill, KillMatrix
from suites.regression.bugs import COPY_LAGS, prompts

CHANGES: dict[Where, Callable[[Cell], bool]] = {
    Where.EVERYWHERE: lambda cell: True,
    Where.EAGER: lambda cell: cell["compile"] == "eager",
    Where.COMPILED: lambda cell: cell["compile"] == "compiled",
    Where.CHUNKED: lambda cell: cell["compile"] == "eager" and cell["chunk"] == "chunked",
}
CELLS = tuple(
    Cell.parse(values)
    for values in ("", "chunk=chunked", "compile=compiled", "compile=compiled,chunk=chunked")
)
EMBEDDED = (
    Case(task="embed", prompts=prompts(50, 17, 9, 33), normalize=True),
    Case(task="token_embed", prompts=prompts(50, 17), normalize=True),
)
"""Prompts whose last chunk is short, where products have few rows."""
SCORED = Case(task="score", prompts=prompts(*range(5, 60, 5)), activation=True)
"""Many: a sigmoid written otherwise has the same bits more often than not."""


@pytest.fixture(scope="module")
def bench_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., TrialBench]]:
    made: list[TrialBench] = []

    @cache
    def bench(checkpoint: str, dtype: str) -> TrialBench:
        folder = tmp_path_factory.mktemp(f"{checkpoint}-{dtype}")
        made.append(TrialBench(checkpoint, folder, dtype=dtype))
        return made[-1]

    yield bench
    for one in made:
        one.close()


def answers(bench: TrialBench, checkpoint: str) -> dict[tuple[int, Cell], list[Any]]:
    """Case and cell -> what every prompt gets, as bits."""
    decoder = CHECKPOINTS[checkpoint].kind == "decoder"
    cases = (*EMBEDDED, SCORED) if decoder else EMBEDDED
    return {
        (number, cell): [output.bits.tolist() for output in bench.answers(case, COPY_LAGS, cell)]
        for number, case in enumerate(cases)
        for cell in CELLS
        if decoder or cell["chunk"] == "whole"
    }


@pytest.mark.xdist_group("tiny-qwen3")
@pytest.mark.parametrize("control", CONTROLS.values(), ids=lambda control: control.name)
def test_a_control_changes_bits_where_it_says(
    control: Control, bench_of: Callable[..., TrialBench]
) -> None:
    bench = bench_of(control.checkpoint, control.dtype)
    before = answers(bench, control.checkpoint)
    with bench.planted(control.plugin):
        there = answers(bench, control.checkpoint)
    changed = {cell for (number, cell), got in before.items() if got != there[number, cell]}
    expected = {cell for _, cell in before if CHANGES[control.where](cell)}
    assert changed == expected or (changed < expected and not control.sure)
    assert answers(bench, control.checkpoint) == before, "the control was not taken out"


def test_the_catalogue_is_large_enough_and_of_its_own() -> None:
    assert sum(control.sure for control in CONTROLS.values()) >= 10
    assert not set(CONTROLS) & set(FAULTS)
    assert {control.where for control in CONTROLS.values()} == set(Where)
    assert {control.dtype for control in CONTROLS.values()} == {"float32", "bfloat16"}


@pytest.mark.parametrize("control", CONTROLS.values(), ids=lambda control: control.name)
def test_an_entry_says_all_and_can_be_loaded(control: Control) -> None:
    assert load_plugin(control.plugin) is control
    assert control.checkpoint in CHECKPOINTS
    assert all((control.difference, control.allowed))


@pytest.mark.xdist_group("tiny-qwen3")
def test_a_control_runs_all_its_cases_and_raises_no_alarm(
    bench_of: Callable[..., TrialBench],
) -> None:
    kill = judge_fault(
        bench_of("tiny-qwen3", "float32"), task_of(CONTROLS["products-in-two-halves"].plugin)
    )
    assert (kill.alarms, kill.cases) == (0, 2), kill.by
    assert kill.pairs > 20
    # Nothing is wrong: every compared pair counts, and one that is called different is an alarm.
    assert kill.called["this judge"] == 0
    assert kill.called["bitwise"] > 0
    (found,) = KillMatrix(kills=(), controls=(kill,), clean=()).rivalry()
    assert found.rules["bitwise"].false_alarms == kill.called["bitwise"]
    assert not found.dominating


@pytest.mark.xdist_group("tiny-qwen3")
def test_a_fault_among_the_controls_would_be_flagged(bench_of: Callable[..., TrialBench]) -> None:
    kill = judge_fault(
        bench_of("tiny-qwen3", "float32"), task_of(FAULTS["compiled-in-bfloat16"].plugin)
    )
    assert kill.alarms
    matrix = KillMatrix(kills=(), controls=(kill,), clean=())
    assert not matrix.passes
    assert matrix.to_json()["controls"][0]["flagged"]


@pytest.mark.xdist_group("tiny-qwen3")
def test_rival_rules_are_asked_about_what_the_fault_changed(
    bench_of: Callable[..., TrialBench],
) -> None:
    task = replace(task_of(FAULTS["compiled-in-bfloat16"].plugin), is_control=False)
    kill = judge_fault(bench_of("tiny-qwen3", "float32"), task)
    # Pairs of which both sides changed, or none did, say nothing about a rule.
    assert 0 < kill.compared < kill.pairs
    assert 0 < kill.called["this judge"] <= kill.called["bitwise"] == kill.compared
    assert kill.called["cosine 1e-2"] < kill.compared
    (found,) = KillMatrix(kills=(kill,), controls=(), clean=()).rivalry()
    assert (found.changed, found.legitimate, found.measured) == (kill.compared, 0, False)
    assert found.rules["bitwise"].faults == {kill.name}


def task_of(plugin: str) -> Task:
    return Task(
        name="a control",
        plugin=plugin,
        checkpoint="tiny-qwen3",
        seed=0,
        budget=KillBudget(cases=1, at_least=1, clean_cases=1, control_cases=2),
        is_control=True,
    )


@pytest.mark.parametrize("by", [{"error": 1}, {}], ids=["an error", "nothing compared"])
def test_a_control_that_shows_nothing_does_not_pass(by: dict[str, int]) -> None:
    kill = Kill(
        name="a control",
        checkpoint="tiny-qwen3",
        killed=False,
        cases=1,
        seconds=0.0,
        by=by,
        pairs=len(by),
    )
    assert not KillMatrix(kills=(), controls=(kill,), clean=()).passes


def test_false_alarms_are_those_of_the_clean_engine_and_of_controls() -> None:
    def kill(name: str, alarms: int) -> Kill:
        by = {"exact": alarms} if alarms else {}
        return Kill(
            name=name, checkpoint="c", killed=bool(alarms), cases=1, seconds=0.0, by=by, pairs=9
        )

    results = [kill("a fault", 5), kill("a control", 2), kill(CLEAN, 1), kill(CLEAN, 0)]
    matrix = KillMatrix.of(results, chosen=["a fault"], controls=["a control", "another"])
    assert matrix.false_alarms == 3
    assert not matrix.passes
    assert KillMatrix.of(results[:1], chosen=["a fault"], controls=[]).passes

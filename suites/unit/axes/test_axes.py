"""Every axis catches a system that ignores its switch, in both directions.

Passes wrongly if a witness were believed whatever it says. Ruled out by
suites/meta/test_suites_can_fail.py: `every-witness-is-believed`.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.axes import AXES, AxisError, Cell, baseline, inapplicable, lattice, tier_between
from harness.axes.settings import setting_witnessed
from harness.record import Tier, to_json
from suites.unit.axes.witnesses import LENGTHS, honest, liar, plan_of

CELLS = lattice()
EDGES_OF_AXES = [(axis, value) for axis in AXES.values() for value in axis.values]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_an_honest_run_is_witnessed_on_every_axis(cell: Cell) -> None:
    reasons = [axis.witnessed(cell, honest(cell)) for axis in AXES.values()]
    assert reasons == [None] * 4


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.parametrize("name", AXES)
def test_a_liar_is_not_witnessed_in_any_cell(cell: Cell, name: str) -> None:
    reason = AXES[name].witnessed(cell, liar(cell, name))
    assert reason is not None
    assert reason.startswith(f"{name}={cell[name]} did not take effect")


@pytest.mark.parametrize("name", AXES)
def test_a_silent_witness_is_not_evidence(name: str) -> None:
    cell = baseline()
    for witness in ({}, {"ranks": [], "chunks": None}, {"ranks": [{"rank": 0, "pid": 1}]}):
        reason = AXES[name].witnessed(cell, witness)
        assert reason is not None
        assert "does not tell" in reason or "names no rank" in reason


def test_a_compiler_that_gives_up_after_the_first_steps_is_seen() -> None:
    cell = baseline().with_value("compile", "compiled")
    told = honest(cell)
    told["ranks"][0]["compiled_calls"] = told["ranks"][0]["steps"] - 1
    assert "at least one a step" in str(AXES["compile"].witnessed(cell, told))


def test_one_stage_that_falls_back_to_eager_is_seen() -> None:
    cell = Cell.parse("compile=compiled,pp=2")
    told = honest(cell)
    told["ranks"][1]["compiled_calls"] = 0
    assert "active rank 1" in str(AXES["compile"].witnessed(cell, told))


def test_nothing_executed_is_no_evidence() -> None:
    told = honest(baseline(), chunks={})
    told["ranks"][0]["operations"] = 0
    for name in ("compile", "chunk", "pp"):
        assert AXES[name].witnessed(baseline(), told) is not None


def test_derived_counts_are_not_believed() -> None:
    cell = baseline().with_value("compile", "compiled")
    told = honest(baseline(), derived={"compiled_calls": 99})
    assert AXES["compile"].witnessed(cell, told) is not None


@pytest.mark.parametrize("stages", ["1", "2"])
def test_pipelining_alone_does_not_witness_async(stages: str) -> None:
    cell = Cell.parse(f"async=async,pp={stages}")
    assert AXES["async"].witnessed(cell, honest(cell.with_value("async", "sync"))) is not None


@pytest.mark.parametrize(
    ("steps", "stages", "acts"), [(1, 1, False), (2, 1, True), (2, 2, False), (3, 2, True)]
)
def test_async_needs_a_step_behind_an_output_for_every_stage(
    *, steps: int, stages: int, acts: bool
) -> None:
    plan = [[[f"r{i}", 0, 4, 4]] for i in range(steps)]
    cell = Cell.parse(f"async=async,pp={stages}")
    assert (AXES["async"].applicable(cell, [4] * steps, plan) is None) is acts


def test_async_needs_an_output_before_the_last_step() -> None:
    plan = [[["r0", 0, 4, 12]], [["r0", 4, 4, 12]], [["r0", 8, 4, 12]]]
    cell = Cell.parse("async=async,chunk=chunked")
    assert "first finishes a prompt in step 2" in str(AXES["async"].applicable(cell, [12], plan))


def test_chunking_needs_a_split_prompt() -> None:
    cell = Cell.parse("chunk=chunked")
    assert AXES["chunk"].applicable(cell, LENGTHS, plan_of(cell)) is None
    assert "splits no prompt" in str(AXES["chunk"].applicable(cell, [3], [[["r0", 0, 3, 3]]]))


@pytest.mark.parametrize("axis", AXES.values(), ids=lambda a: a.name)
def test_a_baseline_value_always_applies(axis: Any) -> None:
    assert axis.applicable(baseline(), [1], [[["r0", 0, 1, 1]]]) is None


def test_a_pair_is_inapplicable_when_one_of_its_axes_cannot_act() -> None:
    one_token = [[["r0", 0, 1, 1]]]
    a, b = baseline(), Cell.parse("compile=compiled,chunk=chunked")
    assert "chunk=chunked cannot act" in str(inapplicable(a, b, [1], one_token, one_token))
    assert inapplicable(a, Cell.parse("compile=compiled"), [1], one_token, one_token) is None


def test_chunk_is_exact_only_when_both_sides_attest_batch_invariance() -> None:
    on = honest(baseline(), flags={"batch_invariant": "on"})
    off = honest(baseline())
    assert tier_between(["chunk"], on, on) is Tier.EXACT
    assert tier_between(["chunk"], on, off) is Tier.REORDERED
    assert tier_between(["chunk"], off, {}) is Tier.REORDERED


def test_a_pair_is_held_to_its_loosest_axis() -> None:
    told = honest(baseline())
    assert tier_between(["async", "pp"], told, told) is Tier.EXACT
    assert tier_between(["async", "chunk"], told, told) is Tier.REORDERED
    assert tier_between(["async", "chunk", "compile"], told, told) is Tier.KERNEL
    assert tier_between([], told, told) is Tier.EXACT


@pytest.mark.parametrize(("axis", "value"), EDGES_OF_AXES, ids=lambda x: getattr(x, "name", x))
def test_an_unknown_value_is_refused(axis: Any, value: str) -> None:
    assert axis.check(value) == value
    with pytest.raises(AxisError, match="valid: "):
        axis.witnessed({**baseline(), axis.name: "sideways"}, honest(baseline()))


def test_axis_info_survives_a_record() -> None:
    assert to_json(AXES["pp"].info)["values"] == ["1", "2"]


def test_ranks_in_one_process_are_not_processes() -> None:
    told = honest(Cell.parse("pp=2"))
    assert "2 ranks ran in 1 processes" in str(setting_witnessed("executor", "processes", told))
    told["ranks"][1]["pid"] = 101
    assert setting_witnessed("executor", "processes", told) is None
    assert "expected 1" in str(setting_witnessed("executor", "inline", told))


def test_a_stream_policy_is_witnessed_by_name() -> None:
    told = honest(baseline(), stream_policy="lag(copy@1)")
    assert setting_witnessed("stream_policy", "lag(copy@last)", told) is None
    assert "ran under lag" in str(setting_witnessed("stream_policy", "paced(2)", told))
    assert setting_witnessed("inputs", "ring", told) is None

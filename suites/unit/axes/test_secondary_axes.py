"""The secondary axes: each catches a system that ignores its switch, in both directions.

Passes wrongly if a witness of a secondary axis were believed whatever it says. Ruled out by
suites/meta/test_suites_can_fail.py: `secondary-witnesses-are-believed`.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.axes import (
    ALL_AXES,
    AXES,
    SECONDARY,
    Cell,
    baseline,
    differing,
    edges,
    inapplicable,
    lattice,
    tier_between,
)
from harness.axes.lattice import plan_key, select
from harness.axes.memory import small_pool
from harness.record import Tier
from suites.unit.axes.witnesses import LENGTHS, PLAN_CHUNKED, PLAN_WHOLE, Witness, honest

VALUES = [(axis.name, value) for axis in SECONDARY.values() for value in axis.values]


def told(cell: Cell) -> Witness:
    """What an honest engine leaves behind in a cell."""
    size, small = int(cell.get("block_size", "16")), cell.get("kv_pool") == "small"
    hit = cell.get("prefix_cache") == "on"
    witness = honest(cell)
    witness["memory"] = {
        "num_blocks": small_pool(LENGTHS, size) if small else 1000,
        "peak_blocks": small_pool(LENGTHS, size),
        "tables": {f"r{i}": (n, -(-n // size)) for i, n in enumerate(LENGTHS)},
        "hit_tokens": {"r1": 16} if hit else {},
        "preemptions": {"r2": 1} if small else {},
        "short_steps": 3 if small else 0,
    }
    for rank in witness["ranks"]:
        rank["staging_slots"] = 2 if cell.get("buffers") == "ring" else 1
    return witness


def cell_of(name: str, value: str) -> Cell:
    return baseline().with_value(name, value)


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_only_the_system_that_did_it_is_witnessed(name: str, value: str) -> None:
    axis, cell = ALL_AXES[name], cell_of(name, value)
    assert axis.witnessed(cell, told(cell)) is None
    for other in axis.values:
        if other != value:
            reason = axis.witnessed(cell, told(cell_of(name, other)))
            assert reason is not None
            assert reason.startswith(f"{name}={value} did not take effect")


@pytest.mark.parametrize("axis", SECONDARY.values(), ids=lambda a: a.name)
def test_a_silent_witness_is_not_evidence(axis: Any) -> None:
    for witness in ({}, {"memory": {}, "ranks": []}, {"memory": None, "ranks": [{"rank": 0}]}):
        assert axis.witnessed(baseline(), witness) is not None


def test_a_cell_at_rest_is_called_what_it_always_was() -> None:
    for axis in SECONDARY.values():
        assert cell_of(axis.name, axis.baseline) == baseline()
    cells = lattice(select(["chunk", "kv_pool"]), fixed={"compile": "eager"})
    assert str(cells[0]) == "compile=eager,chunk=whole"
    assert "compile=eager,chunk=chunked,kv_pool=small" in {str(cell) for cell in cells}
    assert len(edges(cells)) == 4
    assert differing(baseline(), cell_of("kv_pool", "small")) == ("kv_pool",)
    assert len(lattice()) == 16


def test_cells_share_a_plan_unless_an_axis_changes_it_by_nature() -> None:
    same = [cell_of("buffers", "ring"), cell_of("block_size", "1"), cell_of("async", "async")]
    assert {plan_key(cell) for cell in same} == {plan_key(baseline())}
    other = [cell_of("prefix_cache", "on"), cell_of("kv_pool", "small")]
    assert len({plan_key(cell) for cell in (*same, *other)}) == 3


@pytest.mark.parametrize(
    ("name", "value", "lengths", "plan", "reason"),
    [
        ("prefix_cache", "on", (40,), PLAN_CHUNKED, "begins behind a cached prefix"),
        ("prefix_cache", "on", (40,), [[["r", 16, 24, 40]]], None),
        ("kv_pool", "small", (40,), PLAN_CHUNKED, "together need 3 blocks and the small pool has"),
        ("kv_pool", "small", (40, 40), PLAN_CHUNKED, None),
        ("block_size", "64", (8, 16), PLAN_WHOLE, "cut prompts"),
        ("block_size", "1", (8, 16), PLAN_WHOLE, None),
        ("buffers", "ring", LENGTHS, PLAN_WHOLE, "vary async or pp"),
    ],
)
def test_what_cannot_act_is_known_from_case_and_plan(
    name: str, value: str, lengths: tuple[int, ...], plan: Any, reason: str | None
) -> None:
    found = inapplicable(baseline(), cell_of(name, value), lengths, plan, plan)
    assert (found is None) if reason is None else (reason in str(found))


def test_a_ring_acts_beside_async_or_a_second_stage() -> None:
    for near in (Cell.parse("async=async"), Cell.parse("pp=2")):
        ring = near.with_value("buffers", "ring")
        assert inapplicable(near, ring, LENGTHS, PLAN_WHOLE, PLAN_WHOLE) is None
        one_step = PLAN_WHOLE[:1]
        assert inapplicable(near, ring, LENGTHS, one_step, one_step) is not None


PP_TP = [Cell.parse(f"pp={pp},tp={tp}") for pp in "12" for tp in "12"]


@pytest.mark.parametrize("cell", PP_TP, ids=str)
@pytest.mark.parametrize("ran", PP_TP, ids=str)
def test_stages_and_tensor_ranks_are_told_apart(cell: Cell, ran: Cell) -> None:
    """Two stages of one rank and one stage of two are two ranks each, and not the same."""
    reasons = [ALL_AXES[name].witnessed(cell, honest(ran)) for name in ("pp", "tp")]
    assert (reasons == [None, None]) is (cell == ran)
    if cell.get("tp") != ran.get("tp"):
        assert None not in reasons


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reductions": 0, "summands": 0}, "0 sums over tensor ranks in 3 steps"),
        ({"reductions": 1, "summands": 2}, "1 sums over tensor ranks in 3 steps"),
        ({"reductions": 24, "summands": 24}, r"sums of [1, 2] summands"),
        ({"reductions": 24, "summands": 25}, "added 25 summands in 24 sums"),
    ],
)
def test_one_rank_that_keeps_its_own_summand_is_seen(change: Any, reason: str) -> None:
    cell = Cell.parse("tp=2")
    witness = told(cell)
    witness["ranks"][1] |= change
    assert reason in str(ALL_AXES["tp"].witnessed(cell, witness))


def test_sums_of_one_summand_on_every_rank_are_seen() -> None:
    cell = Cell.parse("tp=2")
    witness = told(cell)
    for rank in witness["ranks"]:
        rank["summands"] = rank["reductions"]
    assert "1 summands, expected 2" in str(ALL_AXES["tp"].witnessed(cell, witness))


@pytest.mark.parametrize(
    ("stages", "length", "acts"), [("1", 40, False), ("1", 16, True), ("2", 16, False)]
)
def test_steps_that_wait_for_each_others_blocks_cannot_overlap(
    *, stages: str, length: int, acts: bool
) -> None:
    """One prompt a step: of three blocks in a pool of four, or of one block in a pool of two."""
    plan = [[[f"r{i}", 0, length, length]] for i in range(3)]
    cell = Cell.parse(f"async=async,kv_pool=small,pp={stages}")
    found = ALL_AXES["async"].applicable(cell, [length] * 3, plan)
    assert (found is None) is acts
    assert acts or "they wait for each other's" in str(found)
    ample = cell.with_value("kv_pool", "ample")
    assert ALL_AXES["async"].applicable(ample, [length] * 3, plan) is None


def test_a_recording_is_exact_where_both_sides_had_the_same_rows() -> None:
    compiled = Cell.parse("compile=compiled")
    fitted, coarse = (compiled.with_value("graph", value) for value in ("fitted", "coarse"))
    assert tier_between(["graph"], told(compiled), told(fitted)) is Tier.EXACT
    assert tier_between(["graph"], told(compiled), told(coarse)) is Tier.KERNEL
    silent = {**told(fitted), "padded_tokens": []}
    assert tier_between(["graph"], silent, silent) is Tier.KERNEL
    assert tier_between(["compile", "graph"], told(baseline()), told(fitted)) is Tier.KERNEL


def test_replays_that_enter_no_compiled_code_are_compiled_all_the_same() -> None:
    """As on a GPU. Without recordings nothing stands in for the calls."""
    cell = Cell.parse("compile=compiled,graph=coarse")
    for graph, acted in (("coarse", True), ("off", False)):
        witness = told(cell)
        witness["ranks"][0]["compiled_calls"] = 0
        found = AXES["compile"].witnessed(cell.with_value("graph", graph), witness)
        assert (found is None) is acted


@pytest.mark.parametrize(
    ("name", "value", "change", "reason"),
    [
        ("graph", "coarse", {"replays": 1}, "replayed 1 recordings in 3 steps"),
        ("graph", "coarse", {"buckets": (8, 20)}, "recordings of [20] rows"),
        ("graph", "fitted", {"padding_rows": 1}, "padded by 1 rows, expected at most 0"),
        ("attention", "naive", {"attention_calls": {}}, "called naive 0 times in 3 steps"),
        (
            "attention",
            "naive",
            {"attention_calls": {"naive": 12, "sdpa": 1}},
            "attended by 1 sdpa, expected naive only",
        ),
    ],
)
def test_acting_in_part_is_not_acting(name: str, value: str, change: Any, reason: str) -> None:
    cell = cell_of(name, value)
    witness = told(cell)
    witness["ranks"][0] |= change
    assert reason in str(ALL_AXES[name].witnessed(cell, witness))


def test_fitted_recordings_may_add_rows_only_up_to_the_least() -> None:
    cell = cell_of("graph", "fitted")
    witness = told(cell)
    witness["padded_tokens"] = [2, 40]
    witness["ranks"][0]["padding_rows"] = 1
    assert ALL_AXES["graph"].witnessed(cell, witness) is None
    witness["padded_tokens"] = [3, 40]
    assert "at most 0" in str(ALL_AXES["graph"].witnessed(cell, witness))

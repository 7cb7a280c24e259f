"""The judge asks for evidence: what proves nothing is VACUOUS, what is no pair is an ERROR.

Each of these has been seen red with its rule taken out of the judge.

Passes wrongly if what a side does not attest were taken as attested. Ruled out by
suites/meta/test_suites_can_fail.py: `silence-attests`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.axes import AXES, Cell, Edge, edges, lattice
from harness.judge import Execution, Output, oracle_pair
from harness.record import Comparison, Outcome
from suites.unit.axes.witnesses import honest, liar
from suites.unit.judge.pairs import (
    ASYNC,
    BASE,
    CHUNK,
    COMPILE,
    PP,
    World,
    edited,
    fails,
    rounded,
    run,
)

EDGES = edges(lattice())


@pytest.fixture(scope="module")
def embed() -> World:
    return World.of("embed", normalize=False)


# --------------------------------------------------------------------- nothing passes vacuously


@pytest.mark.parametrize("edge", EDGES, ids=lambda e: f"{e.axis}:{e.a}")
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_liar_on_either_side_of_every_edge(embed: World, edge: Edge, side: str) -> None:
    def one(cell: Cell, *, lies: bool) -> Execution:
        told = liar(cell, edge.axis) if lies else honest(cell)
        return run(cell, embed.base, witness=told)

    record = embed.judge(
        one(edge.b, lies=side == "b"), one(edge.a, lies=side == "a"), Comparison.EDGE
    )
    assert record.outcome is Outcome.VACUOUS
    assert f"side {side.upper()}" in record.reason
    assert f"{edge.axis}={(edge.a if side == 'a' else edge.b)[edge.axis]} did not" in record.reason


@pytest.mark.parametrize("name", AXES)
def test_a_liar_far_from_the_baseline(embed: World, name: str) -> None:
    far = Cell.parse("compile=compiled,chunk=chunked,async=async,pp=2")
    record = embed.judge(run(far, embed.base, witness=liar(far, name)))
    assert record.outcome is Outcome.VACUOUS
    assert f"{name}={far[name]} did not take effect" in record.reason


def test_processes_that_are_one_process(embed: World) -> None:
    b = run(PP, embed.base, settings={"executor": "processes", "inputs": "fenced"})
    record = embed.judge(b, settings=["executor"])
    assert record.outcome is Outcome.VACUOUS
    assert "executor=processes did not take effect" in record.reason


@pytest.mark.parametrize("cell", [ASYNC, COMPILE], ids=str)
def test_nothing_compared(embed: World, cell: Cell) -> None:
    empty = tuple(Output.of(np.zeros(0, np.float32)) for _ in embed.base)
    for outputs in ((), empty):
        record = embed.judge(run(cell, outputs), run(BASE, outputs), oracle=None)
        assert record.outcome is Outcome.VACUOUS
        assert record.num_compared == 0


def test_one_empty_output_among_others(embed: World) -> None:
    hole = edited(embed.base, 1, [])
    fails(embed.judge(run(ASYNC, hole), run(BASE, hole), oracle=None), "has no element")


def test_an_execution_against_itself(embed: World) -> None:
    a = run(BASE, embed.base)
    record = embed.judge(a, a, Comparison.SETTING)
    assert record.outcome is Outcome.VACUOUS


def test_a_blind_case(embed: World) -> None:
    blind = type(embed.power)(
        case_id="c", checkpoint="sample", movements=embed.power.movements[:0], blind=True
    )
    for proof, text in ((blind, "blind"), (None, "no proof of power")):
        record = embed.judge(run(ASYNC, embed.base), power=proof)
        assert record.outcome is Outcome.VACUOUS
        assert text in record.reason
        # A difference is a failure all the same.
        wrong = rounded(embed.truth, seed=5)
        assert embed.judge(run(ASYNC, wrong), power=proof).outcome is Outcome.FAIL


# ------------------------------------------------------------------- pairs that are not a pair


@pytest.mark.parametrize(
    "change",
    [
        {"plan_digest": "other"},
        {"padded_tokens": [1]},
        {"instruction_set": "AVX512"},
        {"flags": {"MKL_CBWR": "COMPATIBLE", "batch_invariant": "off"}},
        {"plan_digest": None},
        {"padded_tokens": None},
        {"instruction_set": None},
        {"flags": None},
    ],
    ids=str,
)
def test_a_pair_that_cannot_attest_its_tier_is_an_error(
    embed: World, change: dict[str, Any]
) -> None:
    wrong = rounded(embed.truth, seed=5)  # it would fail, if it could be held to the same bits
    record = embed.judge(run(ASYNC, wrong, witness=honest(ASYNC, **change)))
    assert record.outcome is Outcome.ERROR, record
    assert next(iter(change)) in record.reason


def test_another_thread_count_is_an_error_in_every_tier(embed: World) -> None:
    for cell in (ASYNC, CHUNK, COMPILE):
        told = honest(cell)
        told["ranks"][-1]["num_threads"] = 2
        record = embed.judge(run(cell, embed.base, witness=told))
        assert record.outcome is Outcome.ERROR
        assert "num_threads: [1] against [2]" in record.reason


def test_silence_about_threads_is_no_attestation(embed: World) -> None:
    told = honest(ASYNC)
    del told["ranks"][0]["num_threads"]
    record = embed.judge(run(ASYNC, embed.base, witness=told))
    assert record.outcome is Outcome.ERROR
    assert "does not attest its num_threads" in record.reason


def test_batch_invariant_chunks_are_held_to_the_same_bits_without_the_same_plan(
    embed: World,
) -> None:
    on = {"flags": {"batch_invariant": "on"}}
    a = run(BASE, embed.base, witness=honest(BASE, **on))
    assert embed.judge(run(CHUNK, embed.base, witness=honest(CHUNK, **on)), a).outcome == "PASS"
    other = run(CHUNK, rounded(embed.truth, seed=9), witness=honest(CHUNK, **on))
    fails(embed.judge(other, a), "ulp")


def test_other_flags_are_an_error_in_every_tier(embed: World) -> None:
    told = honest(COMPILE, flags={"MKL_CBWR": "AUTO,STRICT", "batch_invariant": "on"})
    record = embed.judge(run(COMPILE, embed.base, witness=told))
    assert record.outcome is Outcome.ERROR
    assert "batch_invariant='off' against 'on'" in record.reason


def test_an_undeclared_setting_is_an_error(embed: World) -> None:
    ring = run(ASYNC, embed.base, settings={"executor": "inline", "inputs": "ring"})
    record = embed.judge(ring)
    assert record.outcome is Outcome.ERROR
    assert "inputs (fenced against ring)" in record.reason
    assert embed.judge(ring, settings=["inputs"]).outcome is Outcome.PASS


def test_undeclared_or_absent_axes_are_an_error(embed: World) -> None:
    both = Cell.parse("async=async,pp=2")
    record = embed.judge(run(both, embed.base), axes=["async"])
    assert record.outcome is Outcome.ERROR
    assert "the cells differ in async, pp" in record.reason
    record = embed.judge(run(both, embed.base), None, Comparison.EDGE)
    assert "an edge differs in one axis" in record.reason
    record = embed.judge(run(BASE, embed.base, "again"), None, Comparison.SETTING)
    assert record.outcome is Outcome.ERROR
    assert "differ in no axis and no setting" in record.reason


def test_an_axis_that_acted_on_one_side_only_is_an_error(embed: World) -> None:
    a, b = Cell.parse("compile=compiled"), Cell.parse("compile=compiled,pp=2")
    record = embed.judge(
        run(b, embed.base, witness=liar(b, "compile")), run(a, embed.base), Comparison.EDGE
    )
    assert record.outcome is Outcome.ERROR
    assert "the sides also differ in compile" in record.reason


def test_an_axis_that_cannot_act_on_one_side_is_no_difference(embed: World) -> None:
    # Two steps overlap at PP=1 and are too few for async to reach past both stages of PP=2.
    plan = [[["r0", 0, 8, 8]], [["r1", 0, 8, 8]]]
    a, b = Cell.parse("async=async"), Cell.parse("async=async,pp=2")
    told = honest(b)
    for rank in told["ranks"]:
        rank["lookahead"] = 1
    ring = {"inputs": "ring"}

    def edge(**changes: Any) -> Outcome:
        sides = (
            run(b, embed.base, witness=told, **changes),
            run(a, embed.base, **changes),
        )
        return embed.judge(*sides, Comparison.EDGE).outcome

    assert edge(plan=plan, settings=ring) is Outcome.PASS
    # Nor is what these settings cannot promise: one fenced buffer, or a policy that never overlaps.
    assert edge(settings={"inputs": "fenced"}) is Outcome.PASS
    assert edge(settings=ring) is Outcome.ERROR


def test_a_side_that_crashed_is_an_error(embed: World) -> None:
    record = embed.judge(run(ASYNC, (), error="worker 1 died"))
    assert record.outcome is Outcome.ERROR
    assert "worker 1 died" in record.reason
    record = embed.judge(run(ASYNC, embed.base), run(BASE, (), error="out of memory"))
    assert "side A" in record.reason


def test_no_oracle_where_one_decides_is_an_error(embed: World) -> None:
    for cell in (CHUNK, COMPILE):
        assert embed.judge(run(cell, embed.base), oracle=None).outcome is Outcome.ERROR


def test_a_broken_oracle_is_an_error(embed: World) -> None:
    for truth in (embed.truth[:-1], [Output.of(o.float64 * np.nan) for o in embed.truth]):
        assert embed.judge(run(COMPILE, embed.base), oracle=truth).outcome is Outcome.ERROR


def test_a_hazard_fails_whatever_the_numbers(embed: World) -> None:
    told = honest(ASYNC)
    told["ranks"][0]["hazards"] = ["write of rows by step 2 unordered with read by copy 1"]
    fails(embed.judge(run(ASYNC, embed.base, witness=told)), "happens-before: rank 0: write")
    base = honest(BASE)
    base["ranks"][0]["hazards"] = ["x"]
    fails(embed.judge(run(ASYNC, embed.base), run(BASE, embed.base, witness=base)), "side A")


def test_inapplicable_is_neither_pass_nor_vacuous(embed: World) -> None:
    record = embed.judge(run(ASYNC, ()), inapplicable="async=async cannot act: one step")
    assert record.outcome is Outcome.INAPPLICABLE
    assert record.reason == "async=async cannot act: one step"


def test_a_pair_of_another_checkpoint_has_another_id(embed: World) -> None:
    """Families that share a vocabulary share cases, and so the ids of their executions."""
    other = replace(embed, subject=replace(embed.subject, checkpoint="another"))
    pairs = [world.judge(run(BASE, embed.base), run(PP, embed.base)) for world in (embed, other)]
    oracles = [
        oracle_pair(w.subject, run(BASE, w.base), w.truth, power=w.power, bounds=w.bounds)
        for w in (embed, other)
    ]
    assert len({pair.pair_id for pair in (*pairs, *oracles)}) == 4
    assert pairs[0].a == pairs[1].a

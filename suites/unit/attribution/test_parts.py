"""Sets, signatures, distances, words and scripts, each on its own.

Passes wrongly if a failing set that holds another one still counted as minimal. Ruled out by
suites/meta/test_suites_can_fail.py: `every-failing-set-is-minimal`.
"""

from __future__ import annotations

import ast
import itertools
import json
import math

import numpy as np
import pytest

from harness.attribution.gap import FixedLimits, RunLimits, furthest, gap
from harness.attribution.probe import went_away
from harness.attribution.script import script
from harness.attribution.sets import (
    cell_of,
    closure,
    masks,
    minimal_sets,
    nearest_first,
    one_larger,
    switches,
)
from harness.attribution.signature import FailureKind, Signature, is_racy
from harness.attribution.table import CellState, Table
from harness.attribution.wording import smallest_case, title
from harness.axes import baseline, lattice
from harness.case import Case, Prompt
from harness.judge.bounds import Bounds
from harness.judge.calibration import Calibration
from harness.judge.output import Output
from harness.judge.subject import Subject
from harness.record import Tier
from harness.systems.base import Encoded

CELLS = lattice()


# ------------------------------------------------------------------------------------------- sets


def bad_cells(*sets: set[str]) -> list:
    return [cell for cell in CELLS if any(s <= switches(cell) for s in sets)]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_switches_and_cells_are_inverse(cell: object) -> None:
    assert cell_of(switches(cell)) == cell  # type: ignore[arg-type]


def test_minimal_sets_of_any_two_sets_are_those_sets() -> None:
    every = [switches(cell) for cell in CELLS if cell != baseline()]
    for a, b in itertools.combinations(every, 2):
        expected = {a, b} if not (a < b or b < a) else {min(a, b, key=len)}
        assert set(minimal_sets(bad_cells(set(a), set(b)))) == expected


def test_a_bad_baseline_is_the_empty_set() -> None:
    assert minimal_sets(CELLS) == (frozenset(),)
    assert minimal_sets([]) == ()


def test_masks_are_single_values_that_make_a_bad_cell_good() -> None:
    bad = [c for c in bad_cells({"chunk=chunked"}) if c["pp"] == "1"]
    good = [c for c in CELLS if c not in bad]
    assert masks(bad, good) == {"pp=2"}
    assert masks(bad, [c for c in good if c["pp"] == "1"]) == set()


def test_closure_holds_every_subset_smaller_first() -> None:
    cells = closure([frozenset({"chunk=chunked", "pp=2"}), frozenset({"async=async"})])
    assert [len(switches(cell)) for cell in cells] == [0, 1, 1, 1, 2]
    assert cells[0] == baseline()
    assert closure([]) == (baseline(),)


def test_one_larger_adds_one_value() -> None:
    found = {switches(c) for c in one_larger([frozenset({"chunk=chunked"})], CELLS)}
    extra = ("compile=compiled", "async=async", "pp=2")
    assert found == {frozenset({"chunk=chunked", value}) for value in extra}


def test_nearest_first_puts_plans_before_those_who_replay_them() -> None:
    order = nearest_first(CELLS)
    assert order[0] == baseline()
    assert next(c for c in order if c["chunk"] == "chunked") == cell_of(["chunk=chunked"])


def state_at(values: set[str], *, bad: bool = False, unreachable: str = "") -> CellState:
    return CellState(cell=cell_of(values), bad=bad, value=0.0, unreachable=unreachable)


def test_a_cell_in_which_a_switch_cannot_act_hides_nothing() -> None:
    table = Table(subject_of(), FailureKind.DIFFERENCE)
    states = (
        state_at({"chunk=chunked"}, bad=True),
        state_at({"chunk=chunked", "async=async"}, unreachable="the plan has 2 steps"),
        state_at({"chunk=chunked", "pp=2"}),
    )
    table.states.update({state.cell: state for state in states})
    assert table.masks == {"pp=2"}


def test_a_failure_goes_away_only_where_the_switches_could_still_act() -> None:
    failed, passed = state_at({"pp=2"}, bad=True), state_at({"pp=2"})
    idle = state_at({"pp=2"}, unreachable="async cannot act")
    idle_and_failed = state_at({"pp=2"}, bad=True, unreachable="async cannot act")
    assert went_away(failed, passed)
    assert went_away(idle_and_failed, idle)
    assert not went_away(failed, idle)
    assert not went_away(passed, passed)
    assert not went_away(failed, failed)


# -------------------------------------------------------------------------------------- signature


@pytest.mark.parametrize("kind", FailureKind)
@pytest.mark.parametrize(
    "sets",
    [
        (frozenset[str](),),
        (frozenset({"chunk=chunked", "pp=2"}),),
        (frozenset({"async=async"}), frozenset({"pp=2"})),
    ],
)
def test_signature_is_read_back(kind: FailureKind, sets: tuple[frozenset[str], ...]) -> None:
    made = Signature(checkpoint="m", level="token", kind=kind, sets=sets, policy="drawn(0,3,1)")
    assert Signature.parse(str(made)) == made


def test_signature_decides_the_id() -> None:
    made = Signature(
        checkpoint="m",
        level="token",
        kind=FailureKind.DIFFERENCE,
        sets=(frozenset({"pp=2"}),),
        policy="paced(1)",
    )
    again = Signature.parse(str(made))
    other = Signature.parse(str(made).replace("paced(1)", "paced(2)"))
    assert made.finding_id == again.finding_id != other.finding_id


def test_not_a_signature() -> None:
    with pytest.raises(ValueError, match="lacks"):
        Signature.parse("compile/chunk")


def test_only_threads_leave_anything_to_luck() -> None:
    assert is_racy({"stream_policy": "threaded"}, FailureKind.DIFFERENCE)
    assert not is_racy({"stream_policy": "threaded"}, FailureKind.HAZARD)
    assert not is_racy({"stream_policy": "lag(copy@last)"}, FailureKind.DIFFERENCE)


# --------------------------------------------------------------------------------------- distance


def subject_of(lengths: tuple[int, ...] = (4, 4)) -> Subject:
    prompts = tuple(Prompt(tokens=(i + 1,) * n) for i, n in enumerate(lengths))
    return Subject.of(
        Case(task="embed", prompts=prompts), checkpoint="m", dtype="float32", lengths=lengths
    )


def outputs(*values: list[float]) -> tuple[Output, ...]:
    return tuple(Output.of(np.array(v, dtype=np.float32)) for v in values)


A = outputs([3.0, 4.0], [1.0, 0.0])


def test_gap_is_of_the_worst_prompt() -> None:
    found = gap(subject_of(), Tier.KERNEL, A, outputs([3.0, 4.0], [1.25, 0.0]), FixedLimits(0.2))
    assert (found.value, found.limit, found.differs) == (0.25, 0.2, True)
    assert found.note.startswith("prompt 1")
    assert not gap(
        subject_of(), Tier.KERNEL, A, outputs([3.0, 4.0], [1.25, 0.0]), FixedLimits(0.25)
    ).differs


def test_the_furthest_prompt_is_the_one_to_try_alone() -> None:
    assert furthest(subject_of(), A, outputs([3.0, 4.0], [1.25, 0.0])) == 1
    assert furthest(subject_of(), A, outputs([3.0, 5.0], [1.001, 0.0])) == 0
    assert furthest(subject_of(), A, outputs([3.0, 4.0], [math.nan, 0.0])) == 1
    assert furthest(subject_of(), A, A) is None
    assert furthest(subject_of(), A, A[:1]) is None, "its structure is broken"


def test_one_bit_counts_in_the_exact_tier_only() -> None:
    near = outputs([3.0, 4.0], [float(np.nextafter(np.float32(1), np.float32(2))), 0.0])
    assert gap(subject_of(), Tier.EXACT, A, near, FixedLimits(0.1)).differs
    assert not gap(subject_of(), Tier.REORDERED, A, near, FixedLimits(0.1)).differs
    assert not gap(subject_of(), Tier.EXACT, A, A, FixedLimits(0.1)).differs


@pytest.mark.parametrize(
    "broken",
    [
        outputs([3.0, 4.0]),
        outputs([3.0, 4.0], [1.0, 0.0, 0.0]),
        outputs([3.0, float("nan")], [1.0, 0.0]),
    ],
)
def test_broken_structure_is_infinitely_far(broken: tuple[Output, ...]) -> None:
    found = gap(subject_of(), Tier.KERNEL, A, broken, FixedLimits(1e9))
    assert found.differs
    assert found.value == float("inf")


def test_limit_is_twice_the_oracle_bound() -> None:
    bounds, subject = Bounds(calibration=Calibration({})), subject_of()
    bounds.errors.add(subject.key(0), 1e-3)
    oracle = bounds.bound(Tier.KERNEL, subject.key(0)).oracle
    assert RunLimits(bounds).limit(subject, Tier.KERNEL, 0) == 2 * oracle > 2e-3


# ------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (FailureKind.DIFFERENCE, "embed differs when async=async, or pp=2 (any stream policy)"),
        (
            FailureKind.HAZARD,
            "embed: buffer accesses that nothing orders, when async=async, or pp=2 "
            "(any stream policy)",
        ),
    ],
)
def test_titles(kind: FailureKind, text: str) -> None:
    sets = (frozenset({"async=async"}), frozenset({"pp=2"}))
    made = Signature(checkpoint="m", level="sequence", kind=kind, sets=sets, policy="any")
    assert title("embed", made) == text


@pytest.mark.parametrize(
    ("lengths", "split", "text"),
    [
        ((33,), True, "1 prompt of 33 tokens, in chunks of 16 + 16 + 1 (at most 16 a step)"),
        ((17,), True, "1 prompt of 17 tokens, in chunks of 16 + 1 (at most 16 a step)"),
        (
            (4, 65),
            True,
            "2 prompts of 4 and 65 tokens, in chunks of 4 and 4 x 16 + 1 (at most 16 a step)",
        ),
        ((1, 1), False, "2 prompts of 1 token in 1 step; each fits one chunk of 16"),
        ((40,), False, "1 prompt of 40 tokens in 1 step"),
    ],
)
def test_smallest_case_is_told(lengths: tuple[int, ...], split: bool, text: str) -> None:  # noqa: FBT001
    steps = [
        [[str(i), start, min(16, n - start), n]]
        for i, n in enumerate(lengths)
        for start in range(0, n, 16)
    ]
    whole = [[[str(i), 0, n, n] for i, n in enumerate(lengths)]]
    told = smallest_case(lengths, steps if split else whole, chunk=16, split=split)
    assert told == f"smallest case: {text}"


# ----------------------------------------------------------------------------------------- script


def test_script_imports_the_engine_only_and_carries_the_plants() -> None:
    text = script(
        title="embed differs",
        case=Case(task="score", prompts=(Prompt(query="it's", document='"x"\\'),)),
        prompts=[Encoded(token_ids=(1, 2), type_ids=(0, 1))],
        reference={"model": "m", "pooling": None, "plugins": []},
        reference_plan=[[["0", 0, 2, 2]]],
        candidate={"model": "m", "pooling": None, "plugins": []},
        candidate_plan=[[["0", 0, 2, 2]]],
        plants=["package.module:apply"],
        limit=0.0,
        attempts=1,
    )
    tree = ast.parse(text)
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {m.split(".")[0] for m in modules if m} == {"engine"}
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            exec(compile(ast.Module([node], []), "script", "exec"), {"json": json}, found)
    assert found["TASK"] == "classify"
    assert found["PROMPTS"] == [[[1, 2], [0, 1]]]
    assert (
        found["REFERENCE"]["plugins"] == found["CANDIDATE"]["plugins"] == ["package.module:apply"]
    )

"""The reducer and its passes: smaller only, never twice, within the budget.

Passes wrongly if the reducer took every case it is offered. Ruled out by
suites/meta/test_suites_can_fail.py: `larger-cases-are-taken` and `the-last-step-is-not-tried`.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.case import Case, Prompt
from harness.search import Budget, Reducer, reduce_case, size_of
from harness.search.passes import alone, boundary_lengths, cut, filled, without_prompts


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def case_of(*lengths: int, **options: object) -> Case:
    prompts = tuple(
        Prompt(tokens=tuple(100 * i + n + 7 for n in range(length)))
        for i, length in enumerate(lengths)
    )
    return Case(task="embed", prompts=prompts, **options)  # type: ignore[arg-type]


def plenty() -> Budget:
    return Budget(calls=10**6, seconds=10**6)


def lengths(case: Case) -> list[int]:
    return [len(prompt.tokens or ()) for prompt in case.prompts]


# ----------------------------------------------------------------------------------------- budget


def test_budget_runs_out_by_calls_or_by_time() -> None:
    clock = Clock()
    budget = Budget(calls=2, seconds=5.0, clock=clock)
    budget.spend()
    assert not budget.exhausted
    budget.spend()
    assert budget.exhausted
    clock.now = 4.0
    late = Budget(calls=2, seconds=5.0, clock=clock)
    clock.now = 9.0
    assert late.exhausted


def test_share_is_of_what_is_left() -> None:
    clock = Clock()
    budget = Budget(calls=10, seconds=8.0, clock=clock)
    budget.spend(4)
    clock.now = 2.0
    share = budget.share(3)
    assert (share.calls, share.seconds) == (2, 2.0)
    budget.spend(20)
    clock.now = 20.0
    assert (budget.share(1).calls, budget.share(1).seconds) == (0, 0.0)


def test_what_is_counted_apart_is_in_the_total_too() -> None:
    budget = plenty()
    budget.spend(3)
    share = budget.share(2)
    with share.counting("shrinking"):
        share.spend(4)
    with suppress(RuntimeError), share.counting("shrinking"):
        share.spend(2)
        raise RuntimeError
    share.spend()
    budget.absorb(share)
    with budget.counting("shrinking"):
        pass
    assert budget.spent_calls == 10
    assert budget.counts == {"shrinking": [4, 2, 0]}


def test_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="calls=-1"):
        Budget(calls=-1, seconds=1.0)


# ---------------------------------------------------------------------------------------- reducer


def test_only_smaller_cases_that_keep_the_failure_are_taken() -> None:
    asked: list[list[int]] = []

    def keeps(case: Case) -> bool:
        asked.append(lengths(case))
        return lengths(case) != [3]

    reducer = Reducer(case_of(5), keeps=keeps, budget=plenty())
    assert not reducer.consider(case_of(6))
    assert not reducer.consider(case_of(3))
    assert reducer.consider(case_of(4))
    assert reducer.current == case_of(4)
    assert reducer.accepted == [case_of(5), case_of(4)]
    assert asked == [[3], [4]], "a larger case is not worth a run"


@pytest.mark.parametrize(("calls", "expected"), [(2, 2), (99, 4)])
def test_nothing_is_asked_twice_or_beyond_the_budget(calls: int, expected: int) -> None:
    asked = 0
    budget = Budget(calls=calls, seconds=10**6)

    def never(case: Case) -> bool:
        nonlocal asked
        asked += 1
        budget.spend()
        return False

    reducer = Reducer(case_of(9), keeps=never, budget=budget)
    for length in (4, 4, 3, 2, 1):
        reducer.consider(case_of(length))
    assert asked == expected
    assert reducer.exhausted == (calls == 2)


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (case_of(3), Case(task="embed", prompts=(Prompt(text="x"),))),
        (case_of(2, 1), case_of(4)),
        (case_of(4), case_of(2, 2)),
        (case_of(4), case_of(4, normalize=True)),
        (case_of(2, 2), case_of(2, 2, arrivals=(0, 1))),
        (filled(case_of(4), {0: 1}), case_of(4)),
    ],
)
def test_order_of_sizes(small: Case, large: Case) -> None:
    assert size_of(small) < size_of(large)


# ----------------------------------------------------------------------------------------- passes


def test_boundary_lengths_surround_multiples_of_the_chunk() -> None:
    assert list(boundary_lengths(40, 16)) == [1, 15, 16, 17, 31, 32, 33]
    assert list(boundary_lengths(17, 16)) == [1, 15, 16]
    assert list(boundary_lengths(1, 16)) == []


def test_prompts_and_their_arrivals_go_together() -> None:
    case = case_of(1, 2, 3, arrivals=(0, 4, 5))
    left = without_prompts(case, 1, 2)
    assert lengths(left) == [1, 3]
    assert left.arrivals == (0, 5)


def test_texts_are_left_alone() -> None:
    case = Case(task="embed", prompts=(Prompt(text="hello"), Prompt(tokens=(5, 6))))
    assert cut(case, [0, 1], 1).prompts == (Prompt(text="hello"), Prompt(tokens=(5,)))
    assert filled(case, {0: 1, 1: 1}).prompts == (Prompt(text="hello"), Prompt(tokens=(1, 1)))


@pytest.mark.parametrize("least", [1, 2, 15, 16, 17, 20, 33, 47])
def test_the_least_length_is_found(least: int) -> None:
    def keeps(case: Case) -> bool:
        return max(lengths(case)) >= least

    reducer = Reducer(case_of(60, 50, 9, 3, arrivals=(0, 0, 1, 2)), keeps=keeps, budget=plenty())
    assert reduce_case(reducer, chunk=16) == Case(
        task="embed", prompts=(Prompt(tokens=(1,) * least),)
    )


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    salt=st.integers(0, 10**6),
    often=st.integers(2, 5),
)
def test_no_single_step_less_fails(sizes: list[int], salt: int, often: int) -> None:
    """Whatever fails: here it is drawn for each case, so that shorter fails again after longer."""
    start = case_of(*sizes, normalize=True)

    def keeps(case: Case) -> bool:
        return case == start or crc32(f"{salt} {case.case_id}".encode()) % often == 0

    least = reduce_case(Reducer(start, keeps=keeps, budget=plenty()), chunk=16)
    prompts = range(len(least.prompts))
    steps = [replace(least, normalize=None)]
    steps += [without_prompts(least, i, i + 1) for i in prompts if len(prompts) > 1]
    steps += [cut(least, [i], n - 1) for i, n in enumerate(lengths(least)) if n > 1]
    assert not [step for step in steps if step != least and keeps(step)]


@pytest.mark.parametrize("least", [1, 16, 17, 20, 33, 79, 80])
def test_a_long_prompt_is_cut_in_few_questions(least: int) -> None:
    """The halvings, the three lengths where most failures begin, and those around the chunks."""
    asked = 0

    def keeps(case: Case) -> bool:
        nonlocal asked
        asked += 1
        return lengths(case)[0] >= least

    start = case_of(80)
    reduce_case(Reducer(start, keeps=keeps, budget=plenty()), chunk=16)
    tokens = last = 1
    around = len(list(boundary_lengths(least, 16)))
    assert asked <= 3 + math.ceil(math.log2(80)) + around + tokens + last


def test_one_prompt_is_kept_without_options() -> None:
    case = case_of(1, 2, 3, arrivals=(0, 4, 5), normalize=True)
    assert alone(case, 1) == Case(task="embed", prompts=(case.prompts[1],))


def test_every_prompt_that_is_needed_stays() -> None:
    def keeps(case: Case) -> bool:
        return len(case.prompts) >= 3 and lengths(case)[1] >= 17

    reducer = Reducer(case_of(40, 40, 40, 40, 40), keeps=keeps, budget=plenty())
    assert lengths(reduce_case(reducer, chunk=16)) == [1, 17, 1]


def test_tokens_that_matter_stay() -> None:
    def keeps(case: Case) -> bool:
        return len(set(case.prompts[0].tokens or ())) > 1

    reducer = Reducer(case_of(20), keeps=keeps, budget=plenty())
    assert lengths(reduce_case(reducer, chunk=16)) == [2]


def test_prompts_that_must_differ_get_an_id_each() -> None:
    def keeps(case: Case) -> bool:
        return len(case.prompts) == 2 and case.prompts[0] != case.prompts[1]

    reducer = Reducer(case_of(8, 8), keeps=keeps, budget=plenty())
    assert {p.tokens for p in reduce_case(reducer, chunk=16).prompts} == {(1,), (2,)}


def test_prompts_are_simplified_together_where_one_alone_would_not_do() -> None:
    def keeps(case: Case) -> bool:
        ids = [set(p.tokens or ()) for p in case.prompts]
        return lengths(case) == [2, 2] and (case == case_of(2, 2) or ids == [{1}, {2}])

    reducer = Reducer(case_of(2, 2), keeps=keeps, budget=plenty())
    assert [p.tokens for p in reduce_case(reducer, chunk=16).prompts] == [(1, 1), (2, 2)]


def test_reduction_stops_with_its_budget() -> None:
    budget = Budget(calls=2, seconds=10**6)

    def keeps(case: Case) -> bool:
        budget.spend()
        return True

    reducer = Reducer(case_of(60, 50), keeps=keeps, budget=budget)
    reduce_case(reducer, chunk=16)
    assert budget.spent_calls == 2

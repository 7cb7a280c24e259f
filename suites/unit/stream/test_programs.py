"""Soundness of the happens-before check: no hazard, then the same result under every policy.

Passes wrongly if no program's result depended on the schedule. Ruled out by
suites/meta/test_suites_can_fail.py: `every-policy-is-immediate`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from suites.unit.stream.bench import POLICIES, device
from suites.unit.stream.programs import Access, Outcome, programs, run


def outcome(policy: str, program: list[Access]) -> Outcome:
    with device(policy) as on:
        return run(on, program)


@settings(max_examples=60, deadline=None)
@given(programs(careful=True), st.lists(st.integers(0, 3), max_size=8))
def test_a_careful_program_is_clean_and_gives_one_result(
    program: list[Access], choices: list[int]
) -> None:
    expected = outcome("immediate", program)
    for policy in (*POLICIES, f"drawn({','.join(map(str, choices))})"):
        got = outcome(policy, program)
        assert got.hazards == ()
        assert (policy, got.memory, got.seen) == (policy, expected.memory, expected.seen)


@settings(max_examples=120, deadline=None)
@given(programs(careful=False), st.lists(st.integers(0, 3), max_size=8))
def test_hazards_are_those_of_the_definition_whatever_the_policy(
    program: list[Access], choices: list[int]
) -> None:
    """And where there are none, the results agree."""
    expected = outcome("immediate", program)
    for policy in (*POLICIES, f"drawn({','.join(map(str, choices))})"):
        got = outcome(policy, program)
        assert (policy, got.hazards) == (policy, got.expected_hazards)
        if got.hazards == ():
            assert (policy, got.memory, got.seen) == (policy, expected.memory, expected.seen)


@pytest.mark.parametrize(
    ("policy", "stream"),
    [
        ("lag(compute@first)", 0),
        ("lag(copy@first)", 1),
        ("lag(compute@last)", 2),
        ("drawn(0,0,0)", 0),
    ],
)
@pytest.mark.parametrize("careful", [False, True])
def test_the_programs_can_tell_a_schedule_from_another(
    policy: str, stream: int, *, careful: bool
) -> None:
    """The soundness above would say nothing if no program's result ever depended on the policy."""
    late_read = Access(
        stream=stream,
        host=0,
        name="load",
        source=0,
        target=0,
        kind="late",
        careful=careful,
        by_host=False,
    )
    rewrite = replace(late_read, stream=None, name="run", kind="update")
    same = outcome(policy, [late_read, rewrite]).seen == outcome("immediate", [late_read]).seen
    assert same == careful


@pytest.mark.parametrize("by_host", [False, True])
def test_careful_programs_do_order_streams(*, by_host: bool) -> None:
    """Nor if the careful programs were clean because nothing of theirs conflicts."""

    def crosses(program: list[Access]) -> bool:
        written = {a.target: a.timeline for a in program if a.kind in ("update", "copy")}
        return any(
            a.by_host == by_host and written.get(a.source, a.timeline) != a.timeline
            for a in program
        )

    find(programs(careful=True), crosses, settings=settings(phases=[Phase.generate], database=None))

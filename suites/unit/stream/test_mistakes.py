"""The classic mistakes: wrong under the schedule that exposes them, reported under every one.

Passes wrongly if the check knew only the accesses that are declared at submission. Ruled out by
suites/meta/test_suites_can_fail.py: `late-reads-are-not-seen`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.stream import Device
from suites.unit.stream.bench import POLICIES, borrowing, device, restaging, sending

Run = Callable[[Device], list[float]]
MISTAKEN: dict[str, Run] = {
    "restaging": lambda on: restaging(on, fenced=False),
    "borrowing": lambda on: borrowing(on, owned=False),
    "sending": lambda on: sending(on, awaited=False),
}
RIGHT: dict[str, Run] = {
    "restaging": lambda on: restaging(on, fenced=True),
    "borrowing": lambda on: borrowing(on, owned=True),
    "sending": lambda on: sending(on, awaited=True),
}
EXPECTED = {"restaging": [0, 1, 2, 3], "borrowing": [0, 1, 2], "sending": [0, 1, 2]}
# (shape, a policy under which the mistake shows): the other policies hide it.
EXPOSING = {
    ("restaging", "lag(compute@first)"),
    ("restaging", "paced(1)"),  # every load costs 4, so a device of speed 1 falls behind
    ("restaging", "paced(3)"),
    ("borrowing", "lag(copy@first)"),
    ("sending", "lag(compute@last)"),
}
STEERED = ("immediate", "lag(compute@first)", "lag(compute@last)", "lag(copy@first)", "paced(1)")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", EXPECTED)
def test_right_code_is_right_and_clean_under_every_policy(shape: str, policy: str) -> None:
    with device(policy) as on:
        assert RIGHT[shape](on) == EXPECTED[shape]
        assert on.hazards == ()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", EXPECTED)
def test_the_mistake_is_reported_under_every_policy(shape: str, policy: str) -> None:
    with device(policy) as on:
        MISTAKEN[shape](on)
        assert len(on.hazards) == 1


@pytest.mark.parametrize("policy", [*STEERED, "paced(3)"])
@pytest.mark.parametrize("shape", EXPECTED)
def test_the_mistake_shows_only_under_a_policy_that_exposes_it(shape: str, policy: str) -> None:
    with device(policy) as on:
        shows = MISTAKEN[shape](on) != EXPECTED[shape]
    assert shows == ((shape, policy) in EXPOSING)


def test_a_cheap_step_hides_restaging_from_a_paced_device() -> None:
    """Eager keeps up, compiled lags: the same code, priced as one kernel or as many."""
    with device("paced(1)") as on:
        assert restaging(on, fenced=False, cost=1) == [0, 1, 2, 3]
    with device("paced(1)") as on:
        assert restaging(on, fenced=False, cost=2) == [1, 3, 3, 3]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_hazard_names_operations_steps_timelines_and_buffer(policy: str) -> None:
    with device(policy) as on:
        restaging(on, fenced=False)
        assert on.hazards == (
            "buffer 'staging': 'load' of step 0 on compute@0 reads it, 'stage' of step 1 on "
            "host@0 writes it, and nothing orders the two",
        )


@pytest.mark.parametrize("policy", POLICIES)
def test_a_borrowed_view_is_a_read_of_its_buffer(policy: str) -> None:
    with device(policy) as on:
        borrowing(on, owned=False)
        assert on.hazards == (
            "buffer 'hidden': 'fetch' of step 0 on copy@0 reads it, 'forward' of step 1 on "
            "compute@0 writes it, and nothing orders the two",
        )

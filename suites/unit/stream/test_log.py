"""The numbered history and what is read from it.

Passes wrongly if the drawn histories never had a step ahead of a result, so that 0 was always
right. Ruled out by suites/meta/test_suites_can_fail.py: `no-step-runs-ahead`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LedgerError
from engine.stream.log import Operation, OperationLog


def _submit(log: OperationLog, step: int, *, rank: int = 0, cost: int = 1) -> Operation:
    return log.submit(stream=f"compute@{rank}", rank=rank, step=step, name="x", cost=cost)


def test_one_counter_numbers_submissions_and_completions() -> None:
    log = OperationLog()
    a, b = _submit(log, 0), _submit(log, 0, rank=1)
    log.complete(b)
    c = _submit(log, 1)
    log.complete(a)
    assert [(op.number, op.submitted, op.completed) for op in (a, b, c)] == [
        (0, 0, 4),
        (1, 1, 2),
        (2, 3, None),
    ]
    assert log.operations == (a, b, c)
    with pytest.raises(LedgerError, match="completed twice"):
        log.complete(a)


def test_totals_count_what_ran_on_the_rank() -> None:
    log = OperationLog()
    log.complete(_submit(log, 0, cost=3))
    log.complete(_submit(log, 0, cost=4))
    log.complete(_submit(log, 0, rank=1, cost=50))
    _submit(log, 1, cost=100)
    assert (log.num_operations(0), log.total_cost(0)) == (2, 7)
    assert (log.num_operations(1), log.total_cost(1)) == (1, 50)
    assert (log.num_operations(2), log.total_cost(2)) == (0, 0)


def test_a_step_lasts_from_its_first_submission_to_its_last_completion() -> None:
    log = OperationLog()
    a, b = _submit(log, 7), _submit(log, 7)
    log.complete(a)
    assert (log.submitted(7, 0), log.completed(7, 0)) == (0, None)
    log.complete(b)
    assert log.completed(7, 0) == 3
    assert log.steps(0) == (7,)
    for query in (log.submitted, log.completed):
        with pytest.raises(LedgerError, match=r"step=8 was never submitted on rank 0.*\[7\]"):
            query(8, 0)


def test_lookahead_by_hand() -> None:
    log = OperationLog()
    first = _submit(log, 0)
    _submit(log, 1, rank=1)  # another rank's step is no lookahead of this one
    second = _submit(log, 1)
    _submit(log, 0)  # more of step 0, which was submitted before
    third = _submit(log, 2)
    assert log.lookahead(0, [0, 1]) == 2
    for operation in (first, second, third):
        log.complete(operation)
    assert log.lookahead(0, [0]) == 2  # part of it is open still
    assert log.lookahead(0, [1]) == 1
    assert log.lookahead(0, [2]) == 0
    assert log.lookahead(0, []) == log.lookahead(0, [99]) == log.lookahead(5, [0]) == 0


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=30), st.sets(st.integers(0, 5))
)
def test_lookahead_is_what_its_definition_says(
    script: list[tuple[bool, int]], outputs: set[int]
) -> None:
    """Submit (True, step) or complete the n-th open operation; then count by the definition."""
    log, still_open = OperationLog(), list[Operation]()
    for submit, value in script:
        if submit:
            still_open.append(_submit(log, value))
        elif still_open:
            log.complete(still_open.pop(value % len(still_open)))
    for operation in still_open:
        log.complete(operation)
    first = {step: log.submitted(step, 0) for step in log.steps(0)}
    assert log.lookahead(0, outputs) == max(
        (
            sum(first[m] < first[n] < (log.completed(m, 0) or 0) for n in first)
            for m in outputs & first.keys()
        ),
        default=0,
    )


def test_clear_starts_again_at_zero() -> None:
    log = OperationLog()
    log.complete(_submit(log, 0))
    log.clear()
    assert (log.operations, log.num_operations(0), log.steps(0)) == ((), 0, ())
    assert _submit(log, 0).submitted == 0

"""The mutation score counts what ran out of time as a survivor.

Passes wrongly if the session had no mutant that ran out of time. Ruled out by
suites/meta/test_suites_can_fail.py: `late-mutants-count-as-killed`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from suites.mutation.session import score, without_annotations


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Five mutants: one of an annotation, one killed, one survivor, one too late, one untried."""
    path = tmp_path / "session.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table work_items (job_id)")
        connection.execute(
            "create table mutation_specs "
            "(module_path, operator_name, occurrence, start_pos_row, job_id)"
        )
        connection.execute("create table work_results (job_id, test_outcome, output)")
        for job, operator in enumerate(
            ("BinaryOperator_BitOr_Add", "Plus", "Minus", "Loop", "Not")
        ):
            connection.execute("insert into work_items values (?)", (job,))
            values = ("judge.py", f"core/Replace{operator}", 0, 10 + job, job)
            connection.execute("insert into mutation_specs values (?, ?, ?, ?, ?)", values)
        for row in ((1, "KILLED", "1 failed"), (2, "SURVIVED", "ok"), (3, "KILLED", "timeout")):
            connection.execute("insert into work_results values (?, ?, ?)", row)
    return path


def test_timeouts_and_the_untried_are_not_killed(session: Path) -> None:
    assert without_annotations(session) == 1
    found = score(session)
    assert (found.mutants, found.tried, found.killed) == (4, 3, 1)
    assert [str(mutant) for mutant in found.survivors] == [
        "judge.py:12 ReplaceMinus #0",
        "judge.py:13 ReplaceLoop #0 (ran out of time)",
    ]
    assert str(found) == "1 of 3 tried mutants killed (33.3 %); 4 in all"

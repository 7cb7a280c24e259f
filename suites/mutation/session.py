"""A session of cosmic-ray: its mutants, what became of each, and which survived.

cosmic-ray counts a mutant that ran out of time as killed. Nobody waits that long for a red test, so
here it is a survivor.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

CONFIGURATION = """[cosmic-ray]
module-path = [{modules}]
timeout = 60.0
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
"""
COMPARATORS = tuple(
    f"harness/judge/{name}.py" for name in ("metrics", "distances", "closeness", "checks", "lists")
)
TESTS = (
    "suites/unit/judge",
    "suites/meta/test_judge_red.py",
    "suites/meta/test_judge_evidence.py",
)
_ANNOTATION = "%BinaryOperator_BitOr_%"
"""The judge's only `|` stand in annotations, which are never evaluated: no test could tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change that no test noticed, or noticed too late."""

    module: str
    line: int
    operator: str
    occurrence: int
    timed_out: bool

    def __str__(self) -> str:
        late = " (ran out of time)" if self.timed_out else ""
        return f"{self.module}:{self.line} {self.operator} #{self.occurrence}{late}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How far a session has come."""

    mutants: int
    tried: int
    survivors: tuple[Mutant, ...]

    @property
    def killed(self) -> int:
        return self.tried - len(self.survivors)

    def __str__(self) -> str:
        share = f" ({100 * self.killed / self.tried:.1f} %)" if self.tried else ""
        return f"{self.killed} of {self.tried} tried mutants killed{share}; {self.mutants} in all"


def without_annotations(session: Path) -> int:
    """Take the mutants of annotations out of a fresh session; returns how many."""
    with sqlite3.connect(session) as connection:
        jobs = connection.execute(
            "select job_id from mutation_specs where operator_name like ?", (_ANNOTATION,)
        ).fetchall()
        for table in ("mutation_specs", "work_items"):
            connection.executemany(f"delete from {table} where job_id = ?", jobs)
    return len(jobs)


def score(session: Path) -> Score:
    """What the session has found so far."""
    with sqlite3.connect(session) as connection:
        (mutants,) = connection.execute("select count(*) from work_items").fetchone()
        rows = connection.execute(
            "select module_path, start_pos_row, operator_name, occurrence, test_outcome, output "
            "from work_results join mutation_specs using (job_id) "
            "order by module_path, start_pos_row, operator_name, occurrence"
        ).fetchall()
    survivors = []
    for module, line, operator, occurrence, outcome, output in rows:
        late = (output or "").strip() == "timeout"
        if late or outcome != "KILLED":
            survivors.append(
                Mutant(
                    module=module,
                    line=line,
                    operator=operator.removeprefix("core/"),
                    occurrence=occurrence,
                    timed_out=late,
                )
            )
    return Score(mutants=mutants, tried=len(rows), survivors=tuple(survivors))

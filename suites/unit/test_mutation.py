"""The mutation score: what is no mutant, what counts as killed, and that the changed judge is run.

Passes wrongly if the session had no mutant that ran out of time, or if the tests ran on a judge
without the change. Ruled out by suites/meta/test_suites_can_fail.py:
`late-mutants-count-as-killed`, and `test_a_worker_runs_what_is_changed`.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import suites.mutation
from suites.mutation.mutants import Mutant, annotations, digest, in_any_order, mutated
from suites.mutation.results import Result, append, read, score
from suites.mutation.session import SessionError, Worker
from suites.mutation.worker import LEFT_OUT, META, SLOWEST, UNIT, ordered

FIRST = Mutant(module="judge.py", source="a", line=11, operator="core/Plus", occurrence=0)
GREEN = "def test() -> None:\n    pass\n"


def mutant(line: int) -> Mutant:
    return replace(FIRST, line=line)


def result(line: int, outcome: str) -> Result:
    return Result(mutant=mutant(line), outcome=outcome, seconds=1.0, said="")  # type: ignore[arg-type]


def test_timeouts_and_the_untried_are_not_killed() -> None:
    results = [
        result(11, "survived"),
        result(12, "survived"),
        result(13, "timeout"),
        result(11, "killed"),  # tried again
        result(99, "killed"),  # no mutant that is asked about
        Result(mutant=replace(FIRST, source="old"), outcome="survived", seconds=1.0, said=""),
    ]
    found = score([mutant(line) for line in (11, 12, 13, 14)], results)
    assert (found.mutants, found.tried, found.killed) == (4, 3, 1)
    assert [r.mutant.line for r in found.survivors] == [12, 13]
    assert str(found) == (
        "1 of 3 tried mutants killed (33.3 %); 4 in all, 1 of the survivors ran out of time"
    )


def test_results_are_read_back_but_for_a_half_written_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert read(path) == []
    append(path, result(11, "killed"))
    append(path, result(12, "timeout"))
    with path.open("a") as file:
        file.write('{"mutant": {"mod')
    assert read(path) == [result(11, "killed"), result(12, "timeout")]


def test_annotations_are_where_they_stand() -> None:
    text = "x: int | None = a | b\ndef f(y: A | B, z=c | d) -> C | D:\n    return y | z\n"
    spans = [text.splitlines()[b[0] - 1][b[1] : e[1]] for b, e in annotations(text)]
    assert sorted(spans) == ["A | B", "C | D", "int | None"]


def test_a_mutant_of_another_text_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a module of digest a, got"):
        mutated("x = 1\n", FIRST)
    assert digest("x = 1\n") != digest("x = 2\n")


def test_any_order_is_the_same_order_each_time() -> None:
    mutants = [mutant(line) for line in range(20)]
    shuffled = in_any_order(mutants)
    assert shuffled == in_any_order(mutants[::-1])
    assert shuffled != mutants == sorted(shuffled)


def test_a_modules_own_tests_come_first_and_slow_ones_last(tmp_path: Path) -> None:
    (tmp_path / UNIT).mkdir(parents=True)
    for name in ("test_a.py", "test_b.py", LEFT_OUT, SLOWEST):
        (tmp_path / UNIT / name).touch()
    rest = [f"{UNIT}/test_a.py", f"{UNIT}/{SLOWEST}"]
    assert ordered(tmp_path, "b") == [f"{UNIT}/test_b.py", *META, *rest]
    assert sorted(ordered(tmp_path)) == sorted(ordered(tmp_path, "b"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository of one comparator and its test, which this package can be run on."""
    root = tmp_path / "root"
    shutil.copytree(Path(suites.mutation.__file__).parent, root / "suites" / "mutation")
    for folder in ("harness/judge", "suites/unit/judge", "suites/meta"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for package in ("harness", "harness/judge", "suites", "suites/unit", "suites/unit/judge"):
        (root / package / "__init__.py").touch()
    (root / "harness/judge/metrics.py").write_text("def two() -> int:\n    return 2\n")
    (root / UNIT / "test_metrics.py").write_text(
        "from harness.judge.metrics import two\n\n\ndef test() -> None:\n    assert two() == 2\n"
    )
    for name in META:
        (root / name).write_text(GREEN)
    return root


def test_a_worker_runs_what_is_changed(small: Path, tmp_path: Path) -> None:
    """Of the same length, in the same second; and what never ends ends."""
    path = "harness/judge/metrics.py"
    before = (small / path).read_text()
    with Worker(small, tmp_path / "tree", seconds=5.0) as worker:
        for text, outcome in (
            (before.replace("2", "3"), "killed"),
            (before.replace("2", "+2"), "survived"),
            (before.replace("return 2", "while True: pass"), "timeout"),
            (before, "survived"),
        ):
            answer = worker.ask({"module": path, "text": text})
            assert answer["outcome"] == outcome, answer
            assert (tmp_path / "tree" / path).read_text() == before
    assert (small / path).read_text() == before


def test_a_worker_refuses_what_could_tell_nothing(small: Path, tmp_path: Path) -> None:
    own = small / UNIT / "test_metrics.py"
    own.write_text(GREEN)
    with pytest.raises(SessionError, match="another copy of it"):
        Worker(small, tmp_path / "tree")
    own.write_text(GREEN.replace("pass", "assert False"))
    with pytest.raises(SessionError, match=r"(?s)expected green tests.*1 failed"):
        Worker(small, tmp_path / "tree")

"""One minimised case for each public bug that the engine can have, named by its id.

Clean, the case is right: its baseline against float64, and its cell against the baseline. With the
bug planted the same comparison FAILs.

Passes wrongly if a case could not show its bug. Ruled out by `test_the_bug_brought_back_is_seen`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from harness.axes import Cell, baseline
from harness.faults import FAULTS, fault
from harness.record import Comparison, Outcome, PairRecord
from harness.trials.bench import TrialBench
from suites.regression.bugs import BUGS, PublicBug

pytestmark = pytest.mark.xdist_group("tiny-qwen3")


@pytest.fixture(scope="module")
def bench_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[PublicBug], TrialBench]]:
    made: list[TrialBench] = []

    @cache
    def bench(checkpoint: str, axes: tuple[str, ...]) -> TrialBench:
        made.append(TrialBench(checkpoint, tmp_path_factory.mktemp(checkpoint), axes=axes))
        return made[-1]

    yield lambda bug: bench(bug.checkpoint, fault(bug.fault).axes)
    for one in made:
        one.close()


def judged(bench: TrialBench, bug: PublicBug) -> list[PairRecord]:
    """The baseline against float64 first; then the bug's cell against the baseline."""
    cell = Cell.parse(bug.cell)
    plan_donor = baseline().with_value("chunk", cell["chunk"])
    cells = tuple(dict.fromkeys((baseline(), plan_donor, cell)))
    _, pairs = bench.judged(bug.case, bug.settings, cells=cells)
    oracle = [p for p in pairs if p.comparison is Comparison.ORACLE]
    own = [p for p in pairs if p.comparison is Comparison.BASELINE and Cell.of(p.cell_b) == cell]
    return [*oracle, *own]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.public_id)
def test_the_engine_has_it_right(
    bug: PublicBug, bench_of: Callable[[PublicBug], TrialBench]
) -> None:
    pairs = judged(bench_of(bug), bug)
    assert len(pairs) == (2 if bug.cell else 1)
    assert [p.outcome for p in pairs] == [Outcome.PASS] * len(pairs), [p.reason for p in pairs]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.public_id)
def test_the_bug_brought_back_is_seen(
    bug: PublicBug, bench_of: Callable[[PublicBug], TrialBench]
) -> None:
    planted = fault(bug.fault)
    assert bug.public_id in planted.sources
    bench = bench_of(bug)
    with bench.planted(planted.plugin):
        pairs = judged(bench, bug)
    assert pairs[-1].outcome is Outcome.FAIL, pairs[-1].reason


def test_every_id_is_there_once() -> None:
    ids = [bug.public_id for bug in BUGS]
    assert len(set(ids)) == len(ids) >= 40


def test_every_public_id_of_the_catalogue_has_a_case() -> None:
    named = {source for planted in FAULTS.values() for source in planted.sources}
    assert named - {bug.public_id for bug in BUGS} == set()

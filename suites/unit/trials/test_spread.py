"""Trials over worker processes: every one once, the same verdicts, and a lost one costs itself.

Passes wrongly if all work went to one worker, or a trial that died took the others with it unseen.
Ruled out by suites/meta/test_suites_can_fail.py: `a-worker-takes-whatever-comes`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.faults import FAULTS
from harness.trials.bench import TrialBench
from harness.trials.kills import KillBudget, Task, kill_matrix
from harness.trials.ledger import Ledger
from harness.trials.matrix import CLEAN, Kill
from harness.trials.spread import DIED, BenchKey, Queue, spread

BUDGET = KillBudget(cases=2, at_least=1, clean_cases=2, control_cases=1)


@dataclass(frozen=True, slots=True)
class Numbered:
    bench: BenchKey
    number: int


NUMBERED = st.lists(st.sampled_from("abc"), max_size=30).map(
    lambda names: [Numbered(BenchKey(name), number) for number, name in enumerate(names)]
)


@given(NUMBERED, st.lists(st.integers(0, 3), max_size=60))
def test_every_trial_is_taken_once_and_in_order(trials: list[Numbered], turns: list[int]) -> None:
    queue, at = Queue(trials), dict[int, BenchKey]()
    taken: list[Numbered] = []
    for worker in [*turns, *range(4), *([0] * len(trials))]:
        trial = queue.take(at.get(worker))
        if trial is None:
            continue
        mine = at.get(worker)
        left = {t.bench for t in trials if t not in taken}
        assert mine is None or mine == trial.bench or mine not in left, "it left what it had warm"
        at[worker] = trial.bench
        taken.append(trial)
    assert sorted(taken, key=lambda t: t.number) == trials
    for name in "abc":
        numbers = [t.number for t in taken if t.bench == BenchKey(name)]
        assert numbers == sorted(numbers)


def test_workers_go_where_most_waits_for_each() -> None:
    trials = [Numbered(BenchKey("many"), n) for n in range(9)] + [Numbered(BenchKey("few"), 9)]
    queue = Queue(trials)
    # For the k-th worker many has (10 - k) / k: from the seventh on that is less than few's one.
    first = [queue.take(None) for _ in range(6)]
    assert [t.bench.checkpoint for t in first if t] == ["many"] * 5 + ["few"]
    assert queue.take(BenchKey("few")) == Numbered(BenchKey("many"), 5)


def tasks() -> list[Task]:
    """Two groups: a decoder's and an encoder's."""
    named = [("tiny-qwen3", "stage-skips-poststep"), ("tiny-bert", "mean-over-padding")]
    return [
        Task(
            name=name or CLEAN,
            plugin=FAULTS[name].plugin if name else "",
            checkpoint=checkpoint,
            seed=0,
            budget=BUDGET,
        )
        for checkpoint, fault in named
        for name in ("", fault)
    ]


def verdicts(kills: list[Kill]) -> list[dict[str, object]]:
    """All but the time it took."""
    plain = [{k: v for k, v in asdict(kill).items() if k != "seconds"} for kill in kills]
    return sorted(plain, key=lambda kill: (kill["name"], kill["checkpoint"]))


@pytest.mark.nightly  # three worker processes, each of which starts engines and compiles
@pytest.mark.timeout(600)
def test_two_processes_say_what_one_says(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "kills.jsonl")
    apart = list(kill_matrix(tasks(), workers=2, ledger=ledger))
    alone = list(kill_matrix(tasks(), workers=1))
    assert verdicts(apart) == verdicts(alone)
    assert Counter(kill.killed for kill in apart) == {True: 2, False: 2}
    assert all(kill.pairs > 10 for kill in apart)
    # What the ledger holds is told again and not run: this plug-in could not be planted.
    broken = [Task(**{**_fields(task), "plugin": "no.such:plugin"}) for task in tasks()]
    again = list(kill_matrix(broken, workers=1, ledger=Ledger(ledger.path)))
    assert Counter(map(repr, again)) == Counter(map(repr, apart))


def _fields(task: Task) -> dict[str, object]:
    return {name: getattr(task, name) for name in Task.__slots__}


def number_of(bench: TrialBench, trial: Numbered) -> int:
    """What a worker is asked here; some questions end it."""
    assert bench.chunk
    if trial.number == 0:
        os._exit(3)
    if trial.number == 1:
        raise ValueError("no answer")
    return trial.number


@pytest.mark.xdist_group("tiny-qwen3")
def test_a_trial_that_is_lost_costs_itself() -> None:
    trials = [Numbered(BenchKey("tiny-bert"), number) for number in range(3)]
    done = list(spread(trials, number_of, workers=1))
    assert [(d.trial.number, d.result, d.lost) for d in done] == [
        (0, None, DIED),
        (1, None, "ValueError: no answer"),
        (2, 2, ""),
    ]


@pytest.mark.xdist_group("tiny-qwen3")
def test_a_task_that_is_lost_is_told_and_not_kept(tmp_path: Path) -> None:
    (task, *_) = tasks()
    broken = Task(**{**_fields(task), "name": "x", "checkpoint": "no-such-checkpoint"})
    ledger = Ledger(tmp_path / "kills.jsonl")
    (kill,) = kill_matrix([broken], workers=1, ledger=ledger)
    assert "no-such-checkpoint" in kill.lost
    assert not kill.killed
    assert kill.by == {"error": 1}
    assert ledger.rows == ()

"""The kill matrix: every fault against the ordinary cases and checks of a profile.

Controls, differences that are no defects, go the same way, and none may be flagged. Engines stay
warm: a plug-in is put into them and taken out again. What it is expected to show is not known here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.case import Case
from harness.record import Comparison, Outcome, PairRecord
from harness.trials.ledger import Ledger
from harness.trials.matrix import Kill
from harness.trials.spread import BenchKey, spread

if TYPE_CHECKING:  # a pool's parent judges nothing and need not load torch
    from harness.campaign.judging import Executed
    from harness.trials.bench import TrialBench


@dataclass(frozen=True, slots=True, kw_only=True)
class KillBudget:
    """How much a profile gives to one fault."""

    cases: int
    """Ordinary cases tried before a fault counts as alive."""
    at_least: int
    """Cases run even when the first already kills, so that the matrix shows every check."""
    clean_cases: int
    """Cases on the engine without any fault, for false alarms."""
    control_cases: int
    """Cases for each control: six are one for each setting of the profile."""


BUDGETS = {
    "smoke": KillBudget(cases=12, at_least=1, clean_cases=12, control_cases=6),
    "pr": KillBudget(cases=24, at_least=3, clean_cases=24, control_cases=6),
    "nightly": KillBudget(cases=44, at_least=6, clean_cases=44, control_cases=24),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One fault or control on one checkpoint; `plugin` empty: the clean engine."""

    name: str
    plugin: str
    checkpoint: str
    seed: int
    budget: KillBudget
    dtype: str = "float32"
    axes: tuple[str, ...] = ()
    """That the cells vary; empty: the four primary ones."""
    is_control: bool = False

    @property
    def bench(self) -> BenchKey:
        return BenchKey(self.checkpoint, self.dtype, self.axes)

    @property
    def key(self) -> Mapping[str, Any]:
        """What tells its result in a ledger from every other one's."""
        return {
            "name": self.name,
            "checkpoint": self.checkpoint,
            "dtype": self.dtype,
            "axes": list(self.axes),
            "seed": self.seed,
            "budget": asdict(self.budget),
        }


def kill_matrix(
    tasks: Sequence[Task], *, workers: int, ledger: Ledger | None = None
) -> Iterator[Kill]:
    """Results as they come, those that the ledger holds first: they are not run again.

    A task whose worker died, or that raised, is told and not kept: it is run again next time.
    """
    left = []
    for task in tasks:
        stored = ledger.find(**task.key) if ledger is not None else None
        if stored is None:
            left.append(task)
        else:
            yield Kill(**{k: v for k, v in stored.items() if k not in _KEY_ONLY})
    for done in spread(left, judge_fault, workers=workers):
        if done.result is None:
            yield _lost(done.trial, done.lost)
            continue
        if ledger is not None:
            ledger.append({**asdict(done.result), **done.trial.key})
        yield done.result


_KEY_ONLY = ("axes", "seed", "budget")


def _lost(task: Task, why: str) -> Kill:
    return Kill(
        name=task.name,
        checkpoint=task.checkpoint,
        killed=False,
        cases=0,
        seconds=0.0,
        by={"error": 1},
        dtype=task.dtype,
        lost=why,
    )


def judge_fault(bench: TrialBench, task: Task) -> Kill:
    """One fault, one control or the clean engine on a bench."""
    budget = task.budget
    if not task.plugin:
        kill, seen = _judged(bench, task, budget.clean_cases, budget.clean_cases)
        return _with_rivals(bench, kill, seen)
    with bench.planted(task.plugin):
        if task.is_control:
            kill, seen = _judged(bench, task, budget.control_cases, budget.control_cases)
        else:
            kill, seen = _judged(bench, task, budget.cases, budget.at_least)
    # With the fault taken out: what it changed is what the engine as it is answers otherwise.
    return _with_rivals(bench, kill, seen, planted=not task.is_control)


def _with_rivals(
    bench: TrialBench, kill: Kill, seen: Sequence[Judged], *, planted: bool = False
) -> Kill:
    """Asked about every pair where nothing is wrong, else about those with one changed side."""
    number, called = 0, Counter[str]()
    for judged in seen:
        right = bench.right(judged.case, judged.settings) if planted else {}
        for compared in bench.compared(judged.executed, judged.pairs):
            if planted and not compared.one_side_changed(right):
                continue
            number += 1
            called.update({name: not accepted for name, accepted in compared.verdicts.items()})
    return replace(kill, compared=number, called=dict(called))


@dataclass(frozen=True, slots=True)
class Judged:
    """One case of a trial: what was run of it and what the judge made of that."""

    case: Case
    settings: Mapping[str, str]
    executed: Sequence[Executed]
    pairs: Sequence[PairRecord]


def _judged(bench: TrialBench, task: Task, most: int, least: int) -> tuple[Kill, list[Judged]]:
    began, by, first, pairs_seen, number = time.perf_counter(), Counter[str](), 0, 0, 0
    seen: list[Judged] = []
    for number, case in enumerate(bench.cases(task.seed)[:most], start=1):
        settings = bench.settings[(number - 1) % len(bench.settings)]
        cases, pairs = bench.judged(case, settings)
        seen.append(Judged(case, settings, cases, pairs))
        pairs_seen += sum(pair.outcome is not Outcome.INAPPLICABLE for pair in pairs)
        for pair in pairs:
            by.update(checks_of(pair))
        if not first and any(pair.outcome is Outcome.FAIL for pair in pairs):
            first = number
        if first and number >= least:
            break
    kill = Kill(
        name=task.name,
        checkpoint=task.checkpoint,
        killed=bool(first),
        cases=first or number,
        seconds=round(time.perf_counter() - began, 2),
        by=dict(by),
        pairs=pairs_seen,
        dtype=task.dtype,
    )
    return kill, seen


def checks_of(pair: PairRecord) -> tuple[str, ...]:
    """The checks that a comparison failed by."""
    if pair.outcome is Outcome.ERROR:
        return ("error",)
    if pair.outcome is not Outcome.FAIL:
        return ()
    raced = "happens-before" in pair.reason
    measured = any(m.exceeded for m in pair.measurements) or not raced
    tier = _OTHERWISE.get(pair.comparison, str(pair.tier))
    return (*((tier,) if measured else ()), *(("happens-before",) if raced else ()))


_OTHERWISE = {Comparison.ORACLE: "oracle", Comparison.RELATION: "relation"}
"""Comparisons that are checks of their own; any other goes by its tier."""

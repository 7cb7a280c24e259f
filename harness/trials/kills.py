"""The kill matrix: every fault against the ordinary cases and checks of a profile.

Engines stay warm: a fault is put into them and taken out again. What a fault is expected to show is
not known here.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from harness.record import Comparison, Outcome, PairRecord

if TYPE_CHECKING:  # a pool's parent judges nothing and need not load torch
    from harness.trials.bench import TrialBench

CLEAN = "clean engine"
CHECKS = ("oracle", "exact", "reordered", "kernel", "happens-before", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class KillBudget:
    """How much a profile gives to one fault."""

    cases: int
    """Ordinary cases tried before a fault counts as alive."""
    at_least: int
    """Cases run even when the first already kills, so that the matrix shows every check."""
    clean_cases: int
    """Cases on the engine without any fault, for false alarms."""


BUDGETS = {
    "smoke": KillBudget(cases=12, at_least=1, clean_cases=12),
    "pr": KillBudget(cases=24, at_least=3, clean_cases=24),
    "nightly": KillBudget(cases=44, at_least=6, clean_cases=44),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One fault on one checkpoint; `plugin` empty: the clean engine."""

    name: str
    plugin: str
    checkpoint: str
    seed: int
    budget: KillBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What became of one fault."""

    name: str
    checkpoint: str
    killed: bool
    """Whether a comparison FAILed: a crash alone is no kill."""
    cases: int
    """Ordinary cases up to and including the first that killed it; all of them if none did."""
    seconds: float
    by: dict[str, int] = field(default_factory=dict)
    """Check -> comparisons it failed, over the cases that were run."""
    pairs: int = 0


def kill_matrix(tasks: Sequence[Task], *, workers: int) -> Iterator[Kill]:
    """Results as they come. Each worker process keeps one set of warm engines a checkpoint."""
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin) as pool:
        for done in as_completed([pool.submit(_run, asdict(task)) for task in tasks]):
            yield Kill(**done.result())


def _begin() -> None:
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")  # before anything loads torch
    from harness.oracle.warmup import settle_vector_math  # noqa: PLC0415

    settle_vector_math()


@cache
def _bench(checkpoint: str) -> TrialBench:
    from harness.trials.bench import TrialBench  # noqa: PLC0415 - after the environment is set

    bench = TrialBench(checkpoint, Path(mkdtemp(prefix="parity-kills-")))
    bench.start()
    return bench


def _run(data: dict[str, Any]) -> dict[str, Any]:
    task = Task(**{**data, "budget": KillBudget(**data["budget"])})
    return asdict(judge_fault(_bench(task.checkpoint), task))


def judge_fault(bench: TrialBench, task: Task) -> Kill:
    """One fault (or the clean engine) on a bench."""
    if not task.plugin:
        return _judged(bench, task, task.budget.clean_cases, task.budget.clean_cases)
    with bench.planted(task.plugin):
        return _judged(bench, task, task.budget.cases, task.budget.at_least)


def _judged(bench: TrialBench, task: Task, most: int, least: int) -> Kill:
    began, by, first, pairs_seen, number = time.perf_counter(), Counter[str](), 0, 0, 0
    for number, case in enumerate(bench.cases(task.seed)[:most], start=1):
        settings = bench.settings[(number - 1) % len(bench.settings)]
        _, pairs = bench.judged(case, settings)
        pairs_seen += sum(pair.outcome is not Outcome.INAPPLICABLE for pair in pairs)
        for pair in pairs:
            by.update(checks_of(pair))
        if not first and any(pair.outcome is Outcome.FAIL for pair in pairs):
            first = number
        if first and number >= least:
            break
    return Kill(
        name=task.name,
        checkpoint=task.checkpoint,
        killed=bool(first),
        cases=first or number,
        seconds=round(time.perf_counter() - began, 2),
        by=dict(by),
        pairs=pairs_seen,
    )


def checks_of(pair: PairRecord) -> tuple[str, ...]:
    """The checks that a comparison failed by."""
    if pair.outcome is Outcome.ERROR:
        return ("error",)
    if pair.outcome is not Outcome.FAIL:
        return ()
    raced = "happens-before" in pair.reason
    measured = any(m.exceeded for m in pair.measurements) or not raced
    tier = "oracle" if pair.comparison is Comparison.ORACLE else str(pair.tier)
    return (*((tier,) if measured else ()), *(("happens-before",) if raced else ()))

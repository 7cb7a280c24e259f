"""The kill matrix: every fault against the ordinary cases and checks of a profile.

Controls, differences that are no defects, go the same way, and none may be flagged. Engines stay
warm: a plug-in is put into them and taken out again. What it is expected to show is not known here.
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
    is_control: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What became of one fault, of a control, or of the clean engine."""

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
    dtype: str = "float32"

    @property
    def alarms(self) -> int:
        """Failed comparisons; false ones where nothing is wrong."""
        return sum(n for check, n in self.by.items() if check != "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class KillMatrix:
    """What a command of kills came to."""

    kills: tuple[Kill, ...]
    controls: tuple[Kill, ...]
    clean: tuple[Kill, ...]
    """One for each checkpoint and dtype."""

    @classmethod
    def of(
        cls, results: Sequence[Kill], *, chosen: Sequence[str], controls: Sequence[str]
    ) -> KillMatrix:
        """Results in any order; `chosen` faults and `controls` by name, in the order to tell."""

        def named(names: Sequence[str]) -> tuple[Kill, ...]:
            mine = [kill for kill in results if kill.name in names]
            return tuple(sorted(mine, key=lambda kill: names.index(kill.name)))

        return cls(kills=named(chosen), controls=named(controls), clean=named([CLEAN]))

    @property
    def false_alarms(self) -> int:
        """Failed comparisons of the clean engine and of the controls."""
        return sum(kill.alarms for kill in (*self.clean, *self.controls))

    @property
    def unjudged(self) -> tuple[Kill, ...]:
        """Controls that show nothing: some comparison ended in an error, or none was made."""
        return tuple(kill for kill in self.controls if kill.by.get("error") or not kill.pairs)

    @property
    def passes(self) -> bool:
        everything_killed = all(kill.killed for kill in self.kills)
        return everything_killed and not self.false_alarms and not self.unjudged

    def to_json(self) -> dict[str, Any]:
        """For programs and for the report of the run that it is put beside."""
        return {
            "faults": [{"name": k.name, "killed": k.killed, **_counted(k)} for k in self.kills],
            "controls": [
                {"name": k.name, "flagged": bool(k.alarms), "pairs": k.pairs, **_counted(k)}
                for k in self.controls
            ],
            "false_alarms": self.false_alarms,
        }


def _counted(kill: Kill) -> dict[str, Any]:
    return {"by": kill.by, "cases": kill.cases, "seconds": kill.seconds}


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
def _bench(checkpoint: str, dtype: str) -> TrialBench:
    from harness.trials.bench import TrialBench  # noqa: PLC0415 - after the environment is set

    bench = TrialBench(checkpoint, Path(mkdtemp(prefix="parity-kills-")), dtype=dtype)
    bench.start()
    return bench


def _run(data: dict[str, Any]) -> dict[str, Any]:
    task = Task(**{**data, "budget": KillBudget(**data["budget"])})
    return asdict(judge_fault(_bench(task.checkpoint, task.dtype), task))


def judge_fault(bench: TrialBench, task: Task) -> Kill:
    """One fault, one control or the clean engine on a bench."""
    budget = task.budget
    if not task.plugin:
        return _judged(bench, task, budget.clean_cases, budget.clean_cases)
    with bench.planted(task.plugin):
        if task.is_control:
            return _judged(bench, task, budget.control_cases, budget.control_cases)
        return _judged(bench, task, budget.cases, budget.at_least)


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
        dtype=task.dtype,
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

"""The progress bars of a run: one a job, advancing case by case."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from harness.campaign.corpus import corpus_of
from harness.campaign.local import Watcher
from harness.campaign.spec import Job, RunSpec
from harness.record import CaseRecord


class ProgressWatcher(Watcher):
    """Owns: the bars. Use as a context manager; without a terminal it prints lines instead."""

    def __init__(self, spec: RunSpec, console: Console) -> None:
        self._spec, self._console = spec, console
        self._progress = Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cases"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressWatcher:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def job_started(self, job: Job) -> None:
        if job.label in self._tasks:  # another worker goes on with it
            return
        total = self._num_cases(job)
        share = len(range(job.shard, total, job.num_shards))
        self._tasks[job.label] = self._progress.add_task(job.label, total=share)
        self._say(f"{job.label}: {share} cases")

    def case_started(self, job: Job, record: CaseRecord) -> None:
        del record
        self._progress.advance(self._tasks[job.label])

    def job_finished(self, job: Job) -> None:
        self._say(f"{job.label}: done")

    def judged(self, name: str, counts: Counter[str]) -> None:
        told = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
        self._console.print(f"{name}: {told}", highlight=False)

    def finding_search_started(self, name: str) -> None:
        self._console.print(f"{name}: looking for the smallest case and the guilty switches")

    def _num_cases(self, job: Job) -> int:
        if job.corpus:
            return len(corpus_of(self._spec, job.checkpoint))
        if self._spec.cases_file is None:
            plan = self._spec.plan(job.checkpoint)
            return plan.array_cases if job.array else plan.cases
        lines = Path(self._spec.cases_file).read_text(encoding="utf-8").splitlines()
        return sum(bool(line.strip()) for line in lines)

    def _say(self, text: str) -> None:
        if not self._console.is_terminal:
            self._console.print(text, highlight=False)

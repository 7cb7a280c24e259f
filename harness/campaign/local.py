"""A campaign's driver: workers of an executor execute, this process writes and judges."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from harness.campaign.corpus import corpus_of, replays
from harness.campaign.executors.base import Executor, Worker, WorkerLost
from harness.campaign.executors.local import LocalExecutor
from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.redact import Redactor
from harness.campaign.spec import NOT_FINISHED, Job, RunSpec
from harness.checkpoints.catalogue import checkpoint
from harness.judge.bounds import Bounds
from harness.record import (
    CaseEndRecord,
    CaseRecord,
    DriftRecord,
    EndRecord,
    ExecutionRecord,
    NoticeRecord,
    Outcome,
    PairRecord,
    Record,
    RunWriter,
    exit_code,
    record_from_json,
)

MOST_LOSSES = 3
"""Workers that may die or hang on one job before the rest of it is given up."""


class Watcher:
    """What a caller may watch of a campaign; does nothing by itself."""

    def job_started(self, job: Job) -> None: ...

    def case_started(self, job: Job, record: CaseRecord) -> None: ...

    def execution_finished(self, job: Job, record: ExecutionRecord) -> None: ...

    def job_finished(self, job: Job) -> None: ...

    def judged(self, name: str, counts: Counter[str]) -> None: ...

    def finding_search_started(self, name: str) -> None: ...


@dataclass(slots=True)
class _Seat:
    """One worker and the job it is on."""

    worker: Worker
    job: Job | None = None
    heard: float = field(default_factory=time.monotonic)
    running: list[str] = field(default_factory=list)
    """Ids of cases that it has begun and not ended: one, or all where cells are run in turn."""
    ended: list[str] = field(default_factory=list)
    """Ids of the job's cases that it has ended."""
    again: Job | None = None
    """What is left of the job it was lost on."""


FindFindings = Callable[[str, Sequence[Any], Sequence[PairRecord], Bounds], Sequence[Record]]
"""(checkpoint, executed cases, pairs, bounds) -> findings; set by who knows how to re-run."""


class LocalCampaign:
    """Owns: the run folder's writer, the workers and the queue of jobs."""

    def __init__(
        self,
        spec: RunSpec,
        writer: RunWriter,
        *,
        workers: int = 2,
        watcher: Watcher | None = None,
        find: FindFindings | None = None,
        kept: Mapping[str, Sequence[Record]] | None = None,
        minutes: float | None = None,
        still_failing: bool = False,
        executor: Executor | None = None,
    ) -> None:
        """`kept`: checkpoint -> records of cases that an earlier part of the run has finished.
        `minutes`: for the cases; every job gets an equal share of what is left when it begins.
        `still_failing`: whether something known failed again before the run's own cases.
        `executor`: makes the workers, and is closed by whoever made it; by default processes here.
        """
        self._executor: Executor = executor or LocalExecutor()
        self._spec, self._writer, self._workers = spec, writer, workers
        self._watcher, self._find = watcher or Watcher(), find
        kept = kept or {}
        self._records: dict[str, list[Record]] = {
            name: list(kept.get(name, ())) for name in spec.checkpoints
        }
        self._minutes = minutes
        self._deadline: float | None = None
        self._left: Counter[str] = Counter()
        self._phases: dict[str, float] = defaultdict(float)
        self._counts: Counter[str] = Counter()
        self._redact: Callable[[Record], Record] = Redactor() if spec.redact else lambda r: r
        self._differs = still_failing
        self._corpus = {name: corpus_of(spec, name) for name in spec.checkpoints}

    def run(self) -> EndRecord:
        """Execute, judge, search for causes; returns the last record written."""
        began = time.monotonic()
        self._deadline = None if self._minutes is None else time.time() + 60 * self._minutes
        corpus, own = self._jobs()
        self._left = Counter(job.checkpoint for job in (*corpus, *own))
        # What is known comes first: no case is drawn before it is through.
        for jobs in (corpus, own):
            self._work(deque(jobs))
        end = EndRecord(
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            exit_code=1 if self._differs else exit_code(self._counts),
            counts=dict(self._counts),
            seconds=time.monotonic() - began,
            phases=dict(self._phases),
        )
        self._writer.append(end)
        return end

    def _jobs(self) -> tuple[list[Job], list[Job]]:
        """Those of the corpus, then those of the run's own cases."""
        corpus, own = [], []
        for name in self._spec.checkpoints:
            done = [r.case_id for r in self._records[name] if isinstance(r, CaseEndRecord)]
            kept = self._corpus[name]
            if kept:
                job = Job(checkpoint=name, shard=0, num_shards=1, done=tuple(done), corpus=True)
                corpus.append(job)
            done += [case.case.case_id for case in kept]
            own += [
                Job(
                    checkpoint=name,
                    shard=shard,
                    num_shards=num_shards,
                    array=array,
                    done=tuple(done),
                )
                for array, num_shards in self._parts(name)
                for shard in range(num_shards)
            ]
        return corpus, own

    def _work(self, jobs: deque[Job]) -> None:
        """Have every job done; a checkpoint is judged when nothing is left of it."""
        seats = [self._seat() for _ in range(min(self._workers, len(jobs)))]
        try:
            for seat in seats:
                self._assign(seat, jobs)
            while any(seat.job is not None for seat in seats):
                for index, seat in enumerate(seats):
                    if seat.job is None or self._listen(seat):
                        continue
                    job, again = seat.job, seat.again
                    if again is not None:
                        jobs.appendleft(again)
                    else:
                        self._left[job.checkpoint] -= 1
                        self._watcher.job_finished(job)
                    fresh = self._spec.profile_object.fresh_processes
                    if jobs and (fresh or not seat.worker.alive):
                        seat.worker.stop()
                        seats[index] = seat = self._seat()
                    self._assign(seat, jobs)
                    if not self._left[job.checkpoint]:
                        self._judge(job.checkpoint)
                busy = [s.worker for s in seats if s.job is not None]
                if busy:
                    self._executor.wait(busy, 0.5)
        finally:
            for seat in seats:
                seat.worker.stop()

    def _parts(self, name: str) -> Iterator[tuple[bool, int]]:
        """Whether in a covering array, and the number of shards."""
        plan = self._spec.plan(name)
        if plan.cases:
            yield False, plan.shards
        if self._spec.has_array(name):
            yield True, plan.array_shards

    def _seat(self) -> _Seat:
        return _Seat(worker=self._executor.worker(self._spec, self._writer.folder))

    def _assign(self, seat: _Seat, jobs: deque[Job]) -> None:
        seat.running, seat.ended, seat.again = [], [], None
        left = len(jobs)
        seat.job = jobs.popleft() if jobs else None
        if seat.job is not None:
            if self._deadline is not None:
                now = time.time()
                share = max(self._deadline - now, 0.0) * min(1.0, self._workers / left)
                seat.job = replace(seat.job, until=now + share)
            seat.heard = time.monotonic()
            self._watcher.job_started(seat.job)
            seat.worker.begin(seat.job)

    def _listen(self, seat: _Seat) -> bool:
        """Take what the worker has said; False when its job is over, one way or another."""
        assert seat.job is not None
        while True:
            try:
                message = seat.worker.hear()
            except WorkerLost as lost:
                self._lose(seat, str(lost))
                return False
            if message is None:
                break
            seat.heard = time.monotonic()
            if "record" in message:
                self._take(seat, record_from_json(message["record"]))
            elif "done" in message:
                for phase, seconds in message["phases"].items():
                    self._phases[phase] += seconds
                return False
            else:
                self._lose(seat, message["failed"], detail=message["traceback"])
                return False
        silence = time.monotonic() - seat.heard
        if silence > 2 * self._spec.profile_object.timeout_s:
            seat.worker.kill()
            self._lose(seat, f"its worker said nothing for {silence:.0f} s and was killed")
            return False
        return True

    def _lose(self, seat: _Seat, why: str, detail: str = "") -> None:
        """Give up the case the worker was on, if any, else the job; the rest is for another."""
        job = seat.job
        assert job is not None
        self._counts[Outcome.ERROR] += 1
        what, losses = job.label, job.losses + 1
        if len(seat.running) == 1 and losses < MOST_LOSSES:
            what = f"{job.label}: case {seat.running[0]}"
            seat.again = replace(job, done=(*job.done, *seat.ended, *seat.running), losses=losses)
        elif losses > 1:
            why = f"{why}, the last of {losses}"
        text = f"{what} {NOT_FINISHED}: {why}"
        self._writer.append(self._redact(NoticeRecord(text=text, detail=detail)))

    def _take(self, seat: _Seat, record: Record) -> None:
        job = seat.job
        assert job is not None
        self._writer.append(self._redact(record))
        if not isinstance(record, NoticeRecord):
            self._records[job.checkpoint].append(record)
        if isinstance(record, CaseEndRecord):
            seat.running.remove(record.case_id)
            seat.ended.append(record.case_id)
        elif isinstance(record, CaseRecord):
            seat.running.append(record.case_id)
            self._watcher.case_started(job, record)
        elif isinstance(record, ExecutionRecord):
            self._watcher.execution_finished(job, record)

    def _judge(self, name: str) -> None:
        began = time.monotonic()
        cases = executed(self._records.pop(name)).get(name, [])
        bounds = Bounds()
        judge = CheckpointJudge(
            dtype=self._spec.dtype,
            causal=checkpoint(name).kind == "decoder",
            chunk=self._spec.plan(name).chunk,
            store=OutputStore(self._writer.folder),
            bounds=bounds,
        )
        pairs: list[PairRecord] = []
        drifts: list[DriftRecord] = []
        for record in judge.judge(cases):
            self._writer.append(self._redact(record))
            if isinstance(record, PairRecord):
                pairs.append(record)
            elif isinstance(record, DriftRecord):
                drifts.append(record)
        self._differs |= any(drift.outcome is Outcome.FAIL for drift in drifts)
        for replayed in replays(name, self._corpus[name], pairs):
            self._writer.append(replayed)
        counts = Counter(str(pair.outcome) for pair in pairs)
        self._counts.update(counts)
        self._phases["judge"] += time.monotonic() - began
        self._watcher.judged(name, counts)
        if self._find is not None and counts.get(Outcome.FAIL):
            self._watcher.finding_search_started(name)
            began = time.monotonic()
            for finding in self._find(name, cases, pairs, bounds):
                self._writer.append(self._redact(finding))
            self._phases["findings"] += time.monotonic() - began

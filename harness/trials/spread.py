"""Trials spread over worker processes, each of which keeps the engines of one bench warm.

A worker stays with its bench while anything waits for it, and goes then to where most is waiting:
starting engines and compiling costs as much as several trials. What a worker writes lies in a
temporary folder of its own, which the parent removes.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:  # the parent judges nothing and need not load torch
    from harness.trials.bench import TrialBench

DIED = "its worker process died"


@dataclass(frozen=True, slots=True, order=True)
class BenchKey:
    """Which bench a trial needs."""

    checkpoint: str
    dtype: str = "float32"
    axes: tuple[str, ...] = ()
    """That the cells vary; empty: the four primary ones."""


class Trial(Protocol):
    """Anything that runs on a bench; it goes to a worker, so it must pickle."""

    @property
    def bench(self) -> BenchKey: ...


T = TypeVar("T", bound=Trial)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Done(Generic[T, R]):
    """A trial and what became of it."""

    trial: T
    result: R | None
    lost: str = ""
    """Why there is no result: what was raised, or that the worker died."""


class Queue(Generic[T]):
    """Owns: the trials that no worker has taken yet, and who is at which bench."""

    def __init__(self, trials: Sequence[T]) -> None:
        self._waiting: dict[BenchKey, deque[T]] = {}
        for trial in trials:
            self._waiting.setdefault(trial.bench, deque()).append(trial)
        self._at: Counter[BenchKey] = Counter()

    def take(self, mine: BenchKey | None) -> T | None:
        """The next trial for a worker whose bench is `mine`; None when nothing waits."""
        open_ = {key: trials for key, trials in self._waiting.items() if trials}
        if not open_:
            return None
        if mine is not None:
            self._at[mine] -= 1
        # By worker: where others are at it already, what waits is theirs too.
        key = mine if mine in open_ else max(open_, key=lambda k: len(open_[k]) / (1 + self._at[k]))
        assert key is not None
        self._at[key] += 1
        return open_[key].popleft()


def spread(
    trials: Sequence[T], do: Callable[[TrialBench, T], R], *, workers: int
) -> Iterator[Done[T, R]]:
    """Results as they come. `do` is a function of a module, for a worker to import.

    A trial that raises, or kills its worker, costs itself only: it comes back as lost.
    """
    queue = Queue(trials)
    with TemporaryDirectory(prefix="parity-trials-") as folder:
        pools = [_Worker(folder) for _ in range(min(workers, len(trials)))]
        running: dict[Future[R], tuple[_Worker, T]] = {}

        def give(worker: _Worker) -> None:
            trial = queue.take(worker.bench)
            if trial is not None:
                running[worker.submit(do, trial)] = worker, trial

        try:
            for worker in pools:
                give(worker)
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    worker, trial = running.pop(future)
                    yield worker.done(future, trial)
                    give(worker)
        finally:
            for worker in pools:
                worker.close()


class _Worker:
    """Owns: one process, another one after it died."""

    def __init__(self, folder: str) -> None:
        self.bench: BenchKey | None = None
        self._folder = folder
        self._pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        context = get_context("spawn")
        return ProcessPoolExecutor(
            1, mp_context=context, initializer=_begin, initargs=(self._folder,)
        )

    def submit(self, do: Callable[[TrialBench, T], R], trial: T) -> Future[R]:
        self.bench = trial.bench
        return self._pool.submit(_run, do, trial)

    def done(self, future: Future[R], trial: T) -> Done[T, R]:
        try:
            return Done(trial, future.result())
        except BrokenProcessPool:
            self.close()
            self._pool = self._started()
            return Done(trial, None, DIED)
        except Exception as error:  # noqa: BLE001 - whatever a trial raises is told, and the rest goes on
            return Done(trial, None, f"{type(error).__name__}: {error}")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


_OPEN: dict[BenchKey, TrialBench] = {}
"""This worker's bench: one at a time, so that its engines do not add up."""
_FOLDER: list[str] = []


def _begin(folder: str) -> None:
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")  # before anything loads torch
    from harness.oracle.warmup import settle_vector_math  # noqa: PLC0415

    settle_vector_math()
    _FOLDER[:] = [folder]


def _run(do: Callable[[TrialBench, T], R], trial: T) -> R:
    try:
        return do(_bench(trial.bench), trial)
    except BaseException:
        _leave()  # whatever was left half done is none of the next trial's
        raise


def _bench(key: BenchKey) -> TrialBench:
    from pathlib import Path  # noqa: PLC0415

    from harness.trials.bench import TrialBench  # noqa: PLC0415 - after the environment is set

    if key not in _OPEN:
        _leave()
        folder = Path(mkdtemp(dir=_FOLDER[0]))
        bench = TrialBench(key.checkpoint, folder, dtype=key.dtype, axes=key.axes)
        bench.start()
        _OPEN[key] = bench
    return _OPEN[key]


def _leave() -> None:
    for bench in _OPEN.values():
        bench.close()
    _OPEN.clear()

"""Load on a server: connections that ask drawn cases, and every row they get held to the engine's.

The clients are the harness's own HTTP adapter, so an answer that is no answer is seen as well, and
a 429 or 503 is asked again when its `Retry-After` says.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import httpx
import numpy as np

from harness.axes.lattice import baseline
from harness.campaign.profile import CheckpointPlan
from harness.campaign.reference import CaseReference
from harness.campaign.space import draw, space_of
from harness.case import Case
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.judge.bounds import Bounds
from harness.judge.closeness import bounded, exact
from harness.judge.output import Output
from harness.judge.subject import Subject
from harness.oracle.cache import CachedOracle
from harness.record import Tier
from harness.systems.base import Assignment, Encoded, SystemFailed
from harness.systems.connection import Address
from harness.systems.engine import EngineOptions, EngineSystem
from harness.systems.http import HttpServer
from harness.systems.wire import dialect

MODEL, MAX_LEN, SEED = "tiny-qwen3", 320, 0
TRIES = 1000
"""Of one request: a full queue is asked again for as long as it takes."""
PLAN = CheckpointPlan(
    name=MODEL,
    cases=32,
    chunk=16,
    max_num_seqs=2,
    max_model_len=MAX_LEN,
    max_case_tokens=320,
    tasks=("embed", "token_embed", "classify", "score"),
)
SIZES = {"chunk": PLAN.chunk, "max_num_seqs": PLAN.max_num_seqs, "max_model_len": MAX_LEN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A case, and the rows of its prompts: the offline engine's, and float64's."""

    case: Case
    prompts: tuple[Encoded, ...]
    expected: tuple[Output, ...]
    truth: tuple[Output, ...]


@cache
def questions(*, batch_invariant: bool) -> tuple[Question, ...]:
    """Texts, token ids and pairs for every task that the adapter can ask for, in drawn lengths."""
    folder, found = path_of(MODEL), []
    options = EngineOptions(model=folder, batch_invariant=batch_invariant, **SIZES)
    reference = CaseReference(oracle=CachedOracle(folder), checkpoint=checkpoint(MODEL))
    engine = EngineSystem(options)
    try:
        session = engine.open(baseline(), engine.settings[0])
        space = space_of(checkpoint(MODEL), folder, PLAN, engine.encode)
        for case in draw(space, PLAN, SEED):
            prompts = engine.encode(case)
            found.append(
                Question(
                    case=case,
                    prompts=prompts,
                    expected=session.run(case, prompts).outputs,
                    truth=reference.outputs(case, prompts),
                )
            )
    finally:
        engine.close()
    return tuple(found)


class Heard:
    """Owns: what all connections were told. Its methods are called from their threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.seconds: list[float] = []
        """From a request to its 200."""
        self.answers: dict[tuple[int, bytes], tuple[Output, ...]] = {}
        """One of each that differ, by question."""
        self.times: Counter[tuple[int, bytes]] = Counter()
        self.failures: list[str] = []
        """Of cases that were given up."""

    def status(self, code: int, seconds: float) -> None:
        """One HTTP request was answered."""
        with self._lock:
            self.statuses[code] += 1
            if code == httpx.codes.OK:
                self.seconds.append(seconds)

    def answer(self, question: int, rows: tuple[Output, ...]) -> None:
        """A case was answered."""
        key = question, b"".join(row.data.tobytes() for row in rows)
        with self._lock:
            self.times[key] += 1
            self.answers.setdefault(key, rows)

    def failed(self, why: str) -> None:
        """A case was given up."""
        with self._lock:
            self.failures.append(why)

    def percentile(self, q: float) -> float:
        """Of the milliseconds from a request to its 200."""
        return 1e3 * float(np.percentile(self.seconds, q))

    def wrong_rows(self, asked: Sequence[Question], tier: Tier) -> list[str]:
        """Every row that is not the offline engine's own, told once for each time it came."""
        bounds, told = Bounds(), []
        for key, times in self.times.items():
            question, found = asked[key[0]], []
            for index, row in enumerate(self.answers[key]):
                why = _difference(question, index, row, tier, bounds)
                found += [f"{question.case.task} {question.case.case_id}: {why}"] if why else []
            told += found * times
        return told


def _difference(question: Question, index: int, row: Output, tier: Tier, bounds: Bounds) -> str:
    """Empty, or how a row differs from what the tier allows."""
    mine = question.expected[index]
    if row.shape != mine.shape:
        return f"prompt {index} has shape {row.shape}, expected {mine.shape}"
    case = replace(question.case, prompts=question.case.prompts[index : index + 1], arrivals=())
    lengths = [len(question.prompts[index].token_ids)]
    subject = Subject.of(case, checkpoint=MODEL, dtype="float32", lengths=lengths)
    if tier is Tier.EXACT:
        return exact(subject, (mine,), (row,), None).failure
    truth = (question.truth[index],)
    return bounded(subject, tier, (mine,), (row,), truth, bounds).failure


class _Listening(httpx.HTTPTransport):
    """One connection that reports every answer."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        began = time.perf_counter()
        response = super().handle_request(request)
        response.read()
        self._heard.status(response.status_code, time.perf_counter() - began)
        return response


def load(
    url: str,
    asked: Sequence[Question],
    heard: Heard,
    *,
    connections: int,
    more: Callable[[int], bool],
) -> None:
    """Ask in an order of each connection's own while `more(number of its question)`.

    A connection whose question fails for good asks no more.
    """

    def connection(number: int) -> None:
        order = random.Random(number)
        client = HttpServer(
            Assignment(checkpoint=checkpoint(MODEL), folder=path_of(MODEL), **SIZES),
            Address(url=url, tries=TRIES),
            spoken=dialect("parity"),
            model=MODEL,
            transport=_Listening(heard),
        )
        cell: Mapping[str, str] = {}
        try:
            turn = 0
            while more(turn):
                place = order.randrange(len(asked))
                question = asked[place]
                rows = client.answer(question.case, question.prompts, cell=cell, account=None)
                heard.answer(place, tuple(rows))
                turn += 1
        except SystemFailed as error:
            heard.failed(str(error))
        finally:
            client.close()

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(connection, range(connections)))

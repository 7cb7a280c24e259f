"""The queue, the abort, the failure and the end, each forced and not waited for.

Passes wrongly if a cancelled prompt had run all its steps before it was cancelled. Ruled out by
suites/meta/test_suites_can_fail.py: `cancelled-prompts-run-on`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from engine.engine import Engine
from engine.errors import EngineError, RequestError
from engine.request import PoolingOutput, PoolingRequest, Task
from engine.resources import Resources
from engine.server import batcher as module
from engine.server.batcher import Batcher, OverloadedError, TooLargeError, UnavailableError
from engine.server.config import QueueLimits
from engine.server.metrics import Metrics
from suites.unit.server.gates import BREAK, HOLD, break_next_step, held
from suites.unit.server.serving import base_config

PATIENCE_S = 60
LIMITS = QueueLimits(max_prompts=4, max_tokens=50)


def request(name: str, length: int = 5, task: Task = Task.EMBED) -> PoolingRequest:
    tokens = tuple(5 + (7 * i + 3 * length) % 200 for i in range(length))
    return PoolingRequest(request_id=name, token_ids=tokens, task=task)


@contextmanager
def batching(
    resources: Resources, *plugins: str, limits: QueueLimits = LIMITS, broken_builds: int = 0
) -> Iterator[tuple[Batcher, list[str]]]:
    """A started batcher, and what it reported: `built` for each engine, `dead`."""
    events: list[str] = []

    def build() -> Engine:
        if 1 <= events.count("built") <= broken_builds:
            raise EngineError("no memory")
        events.append("built")
        return Engine(base_config(plugins=plugins), resources=resources)

    batcher = Batcher(build, limits, Metrics(), on_death=lambda: events.append("dead"))
    batcher.start()
    try:
        yield batcher, events
    finally:
        batcher.stop(PATIENCE_S)
        assert not batcher._thread.is_alive()


def answer(future: Future[PoolingOutput]) -> torch.Tensor:
    return future.result(PATIENCE_S).values


def test_a_full_queue_refuses_whole_batches_and_says_when(resources: Resources) -> None:
    with batching(resources, HOLD) as (batcher, _):
        (done,) = batcher.submit([request("warm")])
        answer(done)
        with held() as wait_until_held:
            kept = batcher.submit([request("a"), request("b"), request("c", 30)])
            wait_until_held()
            for too_much in ([request("d"), request("e")], [request("f", 11)]):
                with pytest.raises(OverloadedError, match="Try again later") as caught:
                    batcher.submit(too_much)
                assert 1 <= caught.value.retry_after_s <= 60
            kept += batcher.submit([request("g", 10)])
        assert [answer(future).shape for future in kept] == [answer(done).shape] * 4
        assert answer(batcher.submit([request("d"), request("e")])[0]).numel()


def test_what_no_queue_could_hold_is_told_apart(resources: Resources) -> None:
    with batching(resources) as (batcher, _):
        for too_large in ([request(str(i)) for i in range(5)], [request("long", 51)]):
            with pytest.raises(TooLargeError, match="Split the request"):
                batcher.submit(too_large)


def test_cancelling_aborts_and_makes_room(resources: Resources, offline: Engine) -> None:
    expected = offline.run([request("kept", 9)]).outputs["kept"].values
    with batching(resources, HOLD) as (batcher, _):
        with held() as wait_until_held:
            running = batcher.submit([request("running", 20)])
            wait_until_held()
            waiting = batcher.submit([request("waiting", 15)])
            kept = batcher.submit([request("kept", 9)])
            with pytest.raises(OverloadedError):
                batcher.submit([request("late", 40)])
            for future in (*running, *waiting):
                assert future.cancel()
            late = batcher.submit([request("late", 40)])
        assert torch.equal(answer(kept[0]), expected)
        assert answer(late[0]).shape == expected.shape
        assert not batcher._running


def test_an_aborted_prompt_takes_no_more_steps(resources: Resources) -> None:
    with batching(resources, HOLD, limits=QueueLimits()) as (batcher, _):
        with held() as wait_until_held:
            (given_up,) = batcher.submit([request("given up", 150)])
            wait_until_held()
            given_up.cancel()
        answer(batcher.submit([request("next", 5)])[0])
        assert b"parity_step_tokens_sum 69.0\n" in batcher._metrics.text(), "64 before, 5 after"


def test_a_refused_request_fails_alone(resources: Resources) -> None:
    with batching(resources) as (batcher, _):
        good, bad = batcher.submit([request("good"), replace(request("bad"), token_ids=(10**6,))])
        with pytest.raises(RequestError, match="out of range"):
            answer(bad)
        assert answer(good).numel()


def test_an_id_in_use_is_refused_at_once(resources: Resources) -> None:
    with batching(resources, HOLD) as (batcher, _):
        with held():
            batcher.submit([request("a")])
            for twins in ([request("b"), request("b")], [request("c"), request("a")]):
                with pytest.raises(RequestError, match="used twice"):
                    batcher.submit(twins)
        assert answer(batcher.submit([request("b"), request("c")])[0]).numel()


def test_a_long_session_is_ended_when_all_is_through(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEPS_PER_SESSION", 2)
    limits = QueueLimits(max_prompts=99, max_tokens=9999)
    with batching(resources, limits=limits) as (batcher, events):
        sessions = []
        session = batcher.engine.session
        batcher.engine.session = lambda: sessions.append(1) or session()  # type: ignore[method-assign]
        futures = batcher.submit([request(str(i), 30) for i in range(9)])
        assert all(answer(future).numel() for future in futures)
        futures = batcher.submit([request(f"again {i}", 30) for i in range(9)])
        assert all(answer(future).numel() for future in futures)
        assert len(sessions) >= 2
        assert events == ["built"]


def test_a_failed_engine_is_replaced_once(resources: Resources, offline: Engine) -> None:
    with batching(resources, BREAK, HOLD) as (batcher, events):
        with held() as wait_until_held:
            running = batcher.submit([request("running")])
            wait_until_held()
            queued = batcher.submit([request("queued")])
            break_next_step()
        with pytest.raises(UnavailableError, match="broken now"):
            answer(running[0])
        expected = offline.run([request("queued")]).outputs["queued"].values
        assert torch.equal(answer(queued[0]), expected), "it never reached the engine that failed"
        assert events == ["built", "built"]
        assert not batcher.trouble
        break_next_step()
        with pytest.raises(UnavailableError, match="broken now"):
            answer(batcher.submit([request("second")])[0])
        batcher._thread.join(PATIENCE_S)
        assert events == ["built", "built", "dead"]
        assert batcher.dead
        with pytest.raises(UnavailableError, match="broken now"):
            batcher.submit([request("third")])


def test_an_engine_that_cannot_be_replaced_fails_everybody(resources: Resources) -> None:
    with batching(resources, BREAK, HOLD, broken_builds=1) as (batcher, events):
        with held() as wait_until_held:
            running = batcher.submit([request("running")])
            wait_until_held()
            queued = batcher.submit([request("queued")])
            break_next_step()
        for future, told in ((running[0], "broken now"), (queued[0], "no memory")):
            with pytest.raises(UnavailableError, match=told):
                answer(future)
        batcher._thread.join(PATIENCE_S)
        assert events == ["built", "dead"]


def test_stopping_answers_what_was_accepted_and_refuses_the_rest(resources: Resources) -> None:
    with batching(resources, HOLD) as (batcher, events):
        with held() as wait_until_held:
            running = batcher.submit([request("running")])
            wait_until_held()
            queued = batcher.submit([request("queued", 20)])
            batcher.refuse_new()
            with pytest.raises(UnavailableError, match="shutting down"):
                batcher.submit([request("late")])
        batcher.stop(PATIENCE_S)
        assert answer(running[0]).numel()
        assert answer(queued[0]).numel()
        assert events == ["built"]
        with pytest.raises(EngineError, match="closed"):
            batcher.engine.run([request("a")])


def test_a_batcher_that_never_started_closes_its_engine(resources: Resources) -> None:
    batcher = Batcher(lambda: Engine(base_config(), resources=resources), LIMITS, Metrics())
    batcher.stop()
    with pytest.raises(EngineError, match="closed"):
        batcher.engine.run([request("a")])

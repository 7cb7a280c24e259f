"""An open-ended run: company comes and goes, and no answer changes by a bit.

Passes wrongly if an aborted request ran on to its end and its answer alone was dropped. Ruled out
by suites/meta/test_suites_can_fail.py: `an-abort-hides-the-answer-only`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.config import EngineConfig, ExecutionConfig, SchedulerConfig
from engine.engine import Engine
from engine.errors import LedgerError, RequestError
from engine.executor.inline import InlineExecutor
from engine.request import PoolingRequest, Task
from engine.session import Session
from harness.checkpoints.catalogue import path_of


def request(name: str, length: int, task: Task = Task.EMBED) -> PoolingRequest:
    tokens = tuple(5 + (7 * i + 3 * length) % 200 for i in range(length))
    return PoolingRequest(request_id=name, token_ids=tokens, task=task)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    config = EngineConfig(
        model=path_of("tiny-qwen3"),
        max_model_len=64,
        scheduler=SchedulerConfig(max_num_batched_tokens=8, max_num_seqs=2, async_scheduling=True),
        execution=ExecutionConfig(batch_invariant=True),
    )
    with Engine(config) as started:
        yield started


def finish(session: Session) -> dict[str, torch.Tensor]:
    found = {}
    while session.has_work:
        found |= {output.request_id: output.values for output in session.advance()}
    return found


def test_who_comes_later_is_answered_as_if_it_had_been_there(engine: Engine) -> None:
    asked = [request("a", 30), request("b", 9, Task.TOKEN_EMBED), request("c", 21)]
    offline = engine.run(asked).outputs
    session = engine.session()
    session.admit(asked[0])
    session.advance()
    session.admit(asked[1])
    session.advance()
    session.admit(asked[2])
    found = finish(session)
    assert session.num_steps > 4
    assert found.keys() == offline.keys()
    for name, values in found.items():
        assert torch.equal(values, offline[name].values), name
    assert not [hazard for rank in session.close().ranks for hazard in rank.hazards]


def test_an_abort_leaves_nothing_and_costs_nobody_anything(engine: Engine) -> None:
    kept = request("kept", 25)
    offline = engine.run([kept]).outputs
    session = engine.session()
    session.admit(request("started", 60, Task.TOKEN_EMBED))
    session.admit(kept)
    session.admit(request("waiting", 40))
    for _ in range(3):
        session.advance()
    for name in ("started", "waiting", "never heard of"):
        session.abort(name)
    found = finish(session)
    assert found.keys() == {"kept"}
    assert torch.equal(found["kept"], offline["kept"].values)
    account = session.close()
    assert account.chunks["started"] < 60 / 8
    executor = engine._executor
    assert isinstance(executor, InlineExecutor)
    pooler = executor.runners[-1].pooler
    assert pooler is not None
    assert not pooler.num_retained


def test_a_request_that_cannot_run_is_refused_and_the_next_one_runs(engine: Engine) -> None:
    session = engine.session()
    with pytest.raises(RequestError, match="max_model_len=64"):
        session.admit(request("long", 65))
    session.admit(request("good", 5))
    with pytest.raises(RequestError, match="used twice"):
        session.admit(request("good", 6))
    assert finish(session).keys() == {"good"}
    session.close()


def test_work_is_never_lost_by_closing(engine: Engine) -> None:
    session = engine.session()
    session.admit(request("one", 20))
    session.advance()
    with pytest.raises(LedgerError, match="work left"):
        session.close()
    finish(session)
    session.close()


def test_an_abort_may_cross_the_answer_on_its_way(engine: Engine) -> None:
    session = engine.session()
    session.admit(request("flying", 4))
    assert not session.advance()
    session.abort("flying")
    assert session.has_work
    assert not finish(session)
    session.close()

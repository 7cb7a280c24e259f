"""Ledgers are checked after every step where the switch is on, and cost no call where it is off.

Passes wrongly if the rows that leak were noticed by something else than the ledger's check. Ruled
out by suites/meta/test_suites_can_fail.py: `the-poolers-ledger-is-not-checked`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.config import CHECK_LEDGERS, EngineConfig
from engine.engine import Engine
from engine.errors import EngineError
from engine.kv.blocks import BlockPool
from engine.pooling.dispatcher import Pooler
from engine.pooling.retention import ChunkStore
from engine.request import Task
from engine.scheduler.fcfs import FcfsScheduler
from harness.checkpoints.catalogue import path_of
from suites.parity.memory import Engines, Memory, requests

ASKED = requests((40, 20, 33), tasks=(Task.TOKEN_EMBED, Task.EMBED))
"""Chunked: the token rows are retained from step to step."""


@pytest.fixture(scope="module")
def engines() -> Engines:
    return Engines(path_of("tiny-qwen3"))


def opened(engines: Engines, *, checked: bool, asynchronous: bool = False) -> Engine:
    config = engines.config(Memory(asynchronous=asynchronous, policy="immediate"))
    return Engine(replace(config, check_ledgers=checked), resources=engines.resources)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls of both ledgers' checks."""
    calls: Counter[str] = Counter()
    for owner in (FcfsScheduler, Pooler):
        check: Callable[..., None] = owner.check_integrity

        def instead(
            *given: Any, check: Callable[..., None] = check, name: str = owner.__name__
        ) -> None:
            calls[name] += 1
            check(*given)

        monkeypatch.setattr(owner, "check_integrity", instead)
    return calls


def test_the_tests_check_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert EngineConfig(model=path_of("tiny-qwen3")).check_ledgers
    for value in ("0", ""):
        monkeypatch.setenv(CHECK_LEDGERS, value)
        assert not EngineConfig(model=path_of("tiny-qwen3")).check_ledgers
    monkeypatch.delenv(CHECK_LEDGERS)
    assert not EngineConfig(model=path_of("tiny-qwen3")).check_ledgers


@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_step_is_checked_or_none(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool
) -> None:
    calls = counted(monkeypatch)
    with opened(engines, checked=True, asynchronous=asynchronous) as engine:
        checked = engine.run(ASKED)
    assert calls == {"FcfsScheduler": 2 * checked.witness.steps, "Pooler": checked.witness.steps}
    calls.clear()
    with opened(engines, checked=False, asynchronous=asynchronous) as engine:
        assert engine.run(ASKED).plan == checked.plan
    assert not calls


def losing_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that are given back are lost."""
    monkeypatch.setattr(BlockPool, "release", lambda pool, name: pool._tables.pop(name, None))


def keeping_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are handed out are retained as well."""
    monkeypatch.setattr(ChunkStore, "take", lambda store, name: list(store._rows.get(name, ())))


@pytest.mark.parametrize(
    ("leak", "told"),
    [(losing_a_block, "KV blocks"), (keeping_rows, "rows are retained for")],
    ids=["block", "rows"],
)
def test_a_leak_is_an_error_in_its_step(
    engines: Engines,
    monkeypatch: pytest.MonkeyPatch,
    leak: Callable[[pytest.MonkeyPatch], None],
    told: str,
) -> None:
    leak(monkeypatch)
    with opened(engines, checked=False) as engine:
        assert len(engine.run(ASKED).outputs) == len(ASKED), "unchecked, nobody notices"
    with opened(engines, checked=True) as engine, pytest.raises(EngineError, match=told):
        engine.run(ASKED)


def test_an_aborted_request_is_underway_no_more(engines: Engines) -> None:
    """What is retained of it goes with it, and the check knows."""
    with opened(engines, checked=True) as engine:
        session = engine.session()
        session.admit(ASKED[0])
        session.advance()
        session.abort(ASKED[0].request_id)
        session.admit(ASKED[1])
        found = []
        while session.has_work:
            found += session.advance()
        session.close()
    assert [result.request_id for result in found] == [ASKED[1].request_id]

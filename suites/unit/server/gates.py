"""Plug-ins that hold an engine's step until the test lets go, or break it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from engine.plan import StepPlan
from engine.pooling.base import PoolingBatch
from engine.pooling.dispatcher import BuiltPart, Pooled
from engine.request import PoolingParams
from engine.runner import Runner

HOLD = f"{__name__}:hold"
BREAK = f"{__name__}:break_when_told"
SPOIL = f"{__name__}:spoil_short_prompts"
FAILING_HEAD = f"{__name__}:fail_on_a_width"
FAILS = 13
"""`dimensions` of a request whose head raises."""

_open = threading.Event()
_open.set()
_held = threading.Event()
_breaks: list[str] = []


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Steps wait while this lasts. Gives a call that returns once a step does wait."""
    _held.clear()
    _open.clear()

    def wait_until_held() -> None:
        assert _held.wait(60), "no step was submitted"

    try:
        yield wait_until_held
    finally:
        _open.set()


def break_next_step() -> None:
    """The next step of an engine with BREAK raises."""
    _breaks.append("now")


def hold(runner: Runner) -> Callable[[], None]:
    """Every step waits in its post-step for the gate."""

    def wait() -> None:
        if not _open.is_set():
            _held.set()
            assert _open.wait(60), "a test forgot to open the gate"

    return _before_post_step(runner, wait)


def break_when_told(runner: Runner) -> Callable[[], None]:
    """A step raises if `break_next_step` was called."""

    def break_it() -> None:
        if _breaks:
            raise RuntimeError(f"broken {_breaks.pop()}")

    return _before_post_step(runner, break_it)


def spoil_short_prompts(runner: Runner) -> Callable[[], None]:
    """Answers to prompts of three tokens are not finite."""
    pooler = runner.pooler
    assert pooler is not None, "plant this on an engine with one stage"
    pool = pooler.pool

    def instead(hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        short = {e.request_id for e in batch.entries if e.request.num_tokens == 3}
        pooled = pool(hidden, batch)
        for each in pooled:
            if each.request_id in short:
                each.rows.fill_(float("nan"))
        return pooled

    pooler.pool = instead  # type: ignore[method-assign]
    return lambda: None


def fail_on_a_width(runner: Runner) -> Callable[[], None]:
    """The head of a request raises if it was asked for FAILS dimensions."""
    pooler = runner.pooler
    if pooler is None:
        return lambda: None
    routes = dict(pooler.routes)

    def failing(part: BuiltPart) -> BuiltPart:
        def head(rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
            if params.dimensions == FAILS:
                raise ValueError("this head is planted")
            return part.head(rows, params)

        return replace(part, head=head)

    pooler.routes = {task: tuple(map(failing, parts)) for task, parts in routes.items()}
    return lambda: setattr(pooler, "routes", routes)


def _before_post_step(runner: Runner, action: Callable[[], None]) -> Callable[[], None]:
    post_step = runner.post_step

    def instead(plan: StepPlan) -> None:
        action()
        post_step(plan)

    runner.post_step = instead  # type: ignore[method-assign]

    def undo() -> None:
        del runner.post_step

    return undo

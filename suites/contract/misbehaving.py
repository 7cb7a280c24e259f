"""Plug-ins that make a process die or hang in the middle of its work, or answer wrongly."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import torch

from engine.plan import StepPlan
from engine.pooling.base import PoolingBatch
from engine.pooling.dispatcher import Pooled
from engine.runner import Runner

RANK, WORKER = "parity-rank-", "parity-worker"
"""How the processes of an executor and of a campaign are named."""
LONG = 77
"""Tokens of the prompt that is too much for a worker."""
STEP = 1
"""The step in which it happens: there has been one before it."""
EVERY = 40
"""Of so many answers one is wrong."""


def kill_last_rank(runner: Runner) -> Callable[[], None]:
    """The last rank's process is killed in its second step."""
    return _misbehave(runner, RANK, die, only_last=True)


def hang_last_rank(runner: Runner) -> Callable[[], None]:
    """The last rank's process stops answering in its second step."""
    return _misbehave(runner, RANK, hang, only_last=True)


def kill_encoder_worker(runner: Runner) -> Callable[[], None]:
    """A campaign's worker is killed while it runs an encoder."""
    if runner.model.config.causal:
        return lambda: None
    return _misbehave(runner, WORKER, die, step=0)


def tell_node(runner: Runner) -> Callable[[], None]:
    """Leave the name of the Ray node that a rank is on in the folder that PARITY_NODES names."""
    if (ray := sys.modules.get("ray")) is not None and (folder := os.environ.get("PARITY_NODES")):
        (Path(folder) / ray.get_runtime_context().get_node_id()).touch()
    return lambda: None


def kill_worker_on_long_prompt(runner: Runner) -> Callable[[], None]:
    """A campaign's worker is killed by a prompt of `LONG` tokens."""
    return _misbehave(runner, WORKER, die, step=None, length=LONG)


def hang_worker(runner: Runner) -> Callable[[], None]:
    """A campaign's worker stops answering."""
    return _misbehave(runner, WORKER, hang, step=0)


def nudge_a_number(runner: Runner) -> Callable[[], None]:
    """One number of one answer in EVERY is the next float32."""
    return _spoil(runner, lambda rows: torch.nextafter(rows, torch.full_like(rows, 9.0)))


def shift_a_number(runner: Runner) -> Callable[[], None]:
    """One number of one answer in EVERY is off by a thousandth."""
    return _spoil(runner, lambda rows: rows + 1e-3)


def die() -> None:
    """What the kernel does to a process that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    """Say so in the file that PARITY_HANG_MARK names, if any, and wait for what never comes."""
    mark = os.environ.get("PARITY_HANG_MARK")
    if mark:
        Path(mark).touch()
    threading.Event().wait()


def _misbehave(
    runner: Runner,
    process: str,
    action: Callable[[], None],
    *,
    step: int | None = STEP,
    only_last: bool = False,
    length: int | None = None,
) -> Callable[[], None]:
    """Act in `step`'s post-step (or any with a prompt of `length` tokens), and only in a process of
    that name: never in the test's own."""
    mine = multiprocessing.current_process().name.startswith(process)
    if not mine or (only_last and not runner.is_last):
        return lambda: None
    post_step = runner.post_step

    def instead(plan: StepPlan) -> None:
        if plan.index == step or any(entry.total == length for entry in plan.entries):
            action()
        post_step(plan)

    runner.post_step = instead  # type: ignore[method-assign]

    def undo() -> None:
        del runner.post_step

    return undo


def _spoil(runner: Runner, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
    """Change the first number of one answer in EVERY."""
    pooler, numbers = runner.pooler, count(1)
    if pooler is None:
        return lambda: None
    pool = pooler.pool

    def instead(hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        pooled = pool(hidden, batch)
        for each in pooled:
            if next(numbers) % EVERY == 0:
                first = each.rows.view(-1)[:1]
                first.copy_(change(first))
        return pooled

    pooler.pool = instead  # type: ignore[method-assign]

    def undo() -> None:
        del pooler.pool

    return undo

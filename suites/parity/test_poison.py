"""Poison changes no bit of a right engine, and shows a read after release as NaN.

Passes wrongly if no released block was read again, so that poison had nothing to show. Ruled out by
`test_a_read_after_release_is_nan_only_under_poison`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.request import Task
from engine.runner import Runner
from harness.checkpoints.catalogue import path_of
from suites.parity.fleet import differing
from suites.parity.memory import Engines, Memory, requests

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

ASKED = requests((60, 50, 40, 55), shared=34, tasks=(Task.EMBED, Task.TOKEN_EMBED))
TIGHT = Memory(num_blocks=5, prefix_cache=True)


@pytest.fixture(scope="module")
def engines() -> Engines:
    return Engines(path_of("tiny-qwen3"))


def reading_dropped_blocks(runner: Runner) -> Callable[[], None]:
    """Reads through the last dropped block: what a table kept for a step too long would do."""
    load, seen = runner.stage, [0]

    def stage(staging: Any, step: Any, asked: Any, rows: int) -> None:
        load(staging, step, asked, rows)
        seen[0] = step.dropped[-1] if step.dropped else seen[0]
        for index, entry in enumerate(step.plan.entries):
            if entry.start and step.dropped:
                staging["block_tables"][index, 0] = seen[0]

    runner.stage = stage  # type: ignore[method-assign]
    return lambda: setattr(runner, "stage", load)


@pytest.mark.parametrize(
    "memory",
    [
        TIGHT,
        replace(TIGHT, stages=2),
        replace(TIGHT, asynchronous=True, inputs="ring"),
        replace(TIGHT, asynchronous=True, stages=2, policy="lag(compute@first)"),
    ],
    ids=str,
)
def test_poison_changes_no_bit(engines: Engines, memory: Memory) -> None:
    with engines.open(memory) as engine:
        plain = engine.run(ASKED)
    with engines.open(replace(memory, poison=True)) as engine:
        poisoned = engine.run(ASKED)
    assert plain.plan == poisoned.plan
    assert not poisoned.witness.hazards
    assert sum(poisoned.witness.memory.preemptions.values()) > 0
    assert differing(plain, poisoned) == []


@pytest.mark.parametrize("poison", [False, True])
def test_a_read_after_release_is_nan_only_under_poison(engines: Engines, *, poison: bool) -> None:
    planted = replace(
        TIGHT, poison=poison, plugins=("suites.parity.test_poison:reading_dropped_blocks",)
    )
    with engines.open(planted) as engine:
        outputs = engine.run(ASKED).outputs
    broken = any(torch.isnan(output.values).any() for output in outputs.values())
    assert broken is poison

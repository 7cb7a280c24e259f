"""The three bugs this project exists for, planted on CUDA streams: each needs two conditions.

Passes wrongly if a lag alone changed answers, or any two runs differed. Ruled out by
`test_it_shows_where_it_is_said_to_and_nowhere_else`, which wants the same bits, lag and fault and
all, wherever one condition is missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from engine.config import EXECUTION_MODES
from harness.faults import FAULTS
from harness.systems.lagging import LAGS
from suites.figures import show
from suites.gpu.ways import Way, differing, run

NAME = "tiny-qwen3"
TRIES = 5
"""A race can be missed where the host is slower than the device lags."""


class Conjunction(NamedTuple):
    """Where a fault shows, and what hides it."""

    fails: Way
    hidden: tuple[Way, ...]
    race: bool
    """Whether the happens-before check tells it too."""


PLANTED = {
    "stale-input-buffer": Conjunction(
        fails=Way(chunk=16, plugins=(LAGS["compute"],)),
        hidden=(Way(plugins=(LAGS["compute"],)),),
        race=True,
    ),
    "unowned-token-rows": Conjunction(
        fails=Way(asynchronous=True, plugins=(LAGS["copy"],)),
        hidden=(Way(plugins=(LAGS["copy"],)),),
        race=True,
    ),
    "stage-skips-poststep": Conjunction(
        fails=Way(chunk=16, stages=2),
        hidden=(Way(chunk=16), Way(stages=2)),
        race=False,
    ),
}


def planted(name: str, way: Way) -> Way:
    return replace(way, plugins=(*way.plugins, FAULTS[name].plugin))


@pytest.mark.parametrize("mode", EXECUTION_MODES)
@pytest.mark.parametrize("name", PLANTED)
def test_it_shows_where_it_is_said_to_and_nowhere_else(name: str, mode: str) -> None:
    case, table = PLANTED[name], []
    for place in (case.fails, *case.hidden):
        way = replace(place, mode=mode)
        right = run(NAME, way)
        for _ in range(TRIES if case.race and place is case.fails else 1):
            wrong = run(NAME, planted(name, way), like=right, ordered=False)
            shown = differing(right, wrong)
            if shown:
                break
        told = bool(wrong.witness.hazards)
        table.append(
            (
                "whole" if way.chunk is None else f"chunks of {way.chunk}",
                "async" if way.asynchronous else "sync",
                f"pp={way.stages}",
                f"{len(shown)} of {len(right.outputs)}",
                "told" if told else "none",
            )
        )
        assert bool(shown) == (place is case.fails), table
        assert told == (bool(shown) and case.race)
    show(
        f"{name}, {mode}: answers with other bits",
        ("prompts", "scheduling", "stages", "other bits", "hazard"),
        table,
    )

"""What `batch_invariant` costs: the same run with the mode on over the same run with it off.

Passes wrongly if a run was counted for the mode that it was not in, or left requests out. Ruled out
by `test_a_run_in_the_other_mode_is_no_figure`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

from engine.engine import Engine
from engine.models.config import read_model_config
from engine.request import PoolingRequest, Task
from suites.figures import show
from suites.parity.fleet import Fleet, Way
from suites.parity.prompts import requests

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

LENGTHS = ((150, Task.EMBED), (90, Task.TOKEN_EMBED), (60, Task.EMBED))
REPEATS = 5


def seconds(engine: Engine, wanted: Sequence[PoolingRequest], *, on: bool) -> float:
    """Of one run, which must be in the mode that it is counted for, and answer everything."""
    began = time.perf_counter()
    result = engine.run(wanted)
    spent = time.perf_counter() - began
    assert result.witness.flags["batch_invariant"] == ("on" if on else "off")
    assert len(result.outputs) == len(wanted)
    return spent


def test_a_run_in_the_other_mode_is_no_figure(tiny_qwen3: Path) -> None:
    wanted = requests(LENGTHS[-1:], vocabulary=100)
    for on in (False, True):
        with Fleet(tiny_qwen3, batch_invariant=on).engine(Way(batch_invariant=on)) as engine:
            assert seconds(engine, wanted, on=on) > 0
            with pytest.raises(AssertionError):
                seconds(engine, wanted, on=not on)


@pytest.mark.parametrize("checkpoint", ["tiny_qwen3", "smollm2"])
def test_cost(checkpoint: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(checkpoint)
    wanted = requests(LENGTHS, vocabulary=read_model_config(path).vocab_size)
    rows = []
    fleets = {on: Fleet(path, batch_invariant=on, max_model_len=256) for on in (False, True)}
    for mode in ("eager", "compiled"):
        for chunk in (None, 64):
            ways = {on: Way(mode=mode, chunk=chunk, batch_invariant=on) for on in (False, True)}
            engines = {on: fleets[on].engine(way) for on, way in ways.items()}
            try:
                for engine in engines.values():
                    engine.run(wanted)  # compiles, and fills caches
                # In turns: a machine that slows down slows both sides.
                taken = [
                    {on: seconds(engine, wanted, on=on) for on, engine in engines.items()}
                    for _ in range(REPEATS)
                ]
            finally:
                for engine in engines.values():
                    engine.close()
            off, on = (median(t[key] for t in taken) for key in (False, True))
            ratio = median(t[True] / t[False] for t in taken)
            rows.append((mode, chunk or "whole", 1e3 * off, 1e3 * on, ratio))
    show(
        f"cost of batch_invariant on {checkpoint}: {sum(n for n, _ in LENGTHS)} tokens, "
        f"median of {REPEATS}",
        ("mode", "chunk", "off, ms", "on, ms", "on/off"),
        rows,
    )

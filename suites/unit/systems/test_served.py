"""Our engine behind its own server: the answers, and the dtype they had before they were JSON.

Passes wrongly if whatever came back were called what the engine computes in. Ruled out by
suites/meta/test_suites_can_fail.py: `an-answer-is-narrowed-unseen`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from harness.axes import baseline
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.judge.output import Output
from harness.systems.base import Assignment
from harness.systems.engine import EngineSystem, engine
from harness.systems.served import as_computed

IDS = tuple(range(20, 60))
CASES = (
    Case(task="embed", prompts=(Prompt(tokens=IDS),), normalize=True),
    Case(task="token_embed", prompts=(Prompt(tokens=IDS[:9]),), normalize=False),
    Case(task="score", prompts=(Prompt(tokens=IDS[:12]),), activation=True),
)


@pytest.fixture(scope="module")
def system() -> Iterator[EngineSystem]:
    made = engine(
        Assignment(
            checkpoint=checkpoint("tiny-qwen3"),
            folder=path_of("tiny-qwen3"),
            chunk=64,
            max_num_seqs=8,
            max_model_len=64,
            dtype="bfloat16",
        )
    )
    yield made
    made.close()


@pytest.mark.xdist_group("tiny-qwen3")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.task)
def test_a_server_answers_with_the_offline_bits_in_half_precision(
    case: Case, system: EngineSystem
) -> None:
    settings, prompts = dict(system.settings[0]), system.encode(case)
    (offline,) = system.open(baseline(), settings).run(case, prompts).outputs
    (served,) = system.serve(baseline(), settings).run(case, prompts).outputs
    assert offline.dtype == ("float32" if case.task == "score" else "bfloat16")
    assert (served.dtype, served.bits.tolist()) == (offline.dtype, offline.bits.tolist())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_the_dtype_does_not_hold_stays_float32(dtype: str) -> None:
    exact = Output.of(np.array([0.5, -1.25, 0.0], dtype=np.float32))
    held = as_computed(exact, {dtype})
    assert held.dtype == dtype
    assert held.float64.tolist() == [0.5, -1.25, 0.0]
    changed = Output.of(np.array([0.5, 1.0 + 2.0**-20], dtype=np.float32))
    assert as_computed(changed, {dtype}) is changed
    # Answers of several dtypes, or of none, say nothing about this one.
    assert as_computed(exact, {dtype, "float32"}) is exact
    assert as_computed(exact, set()) is exact

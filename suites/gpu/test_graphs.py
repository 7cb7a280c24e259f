"""CUDA graphs: recorded once for each bucket, replayed in every step, on memory that stays.

Passes wrongly if every step went through Python again instead of a capture. Ruled out by
suites/meta/test_suites_can_fail.py: `nothing-is-captured`.
"""

from __future__ import annotations

import pytest
import torch

from engine.engine import Engine
from suites.forgetful import forget
from suites.gpu.ways import LAYERS, LIMIT, Way, asked, config, differing, errors, resources, run

NAME = "tiny-qwen3"
COARSE = (8, 64)


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("attention", ["triton", "sdpa"])
def test_recordings_are_replayed_in_every_step(attention: str, stages: int) -> None:
    """Whole with Triton's attention; with one that reads sizes back, in pieces around it."""
    way = Way(
        mode="graph",
        attention=attention,
        chunk=16,
        stages=stages,
        asynchronous=True,
        inputs="ring",
    )
    found = run(NAME, way)
    attended = 0 if attention == "triton" else len(found.plan) * LAYERS // stages
    for rank in found.witness.ranks:
        assert rank.replays == len(found.plan)
        assert rank.compiled_calls == 0, "a replay does not come back to Python"
        assert rank.eager_stages == attended
        assert set(rank.buckets) == set(found.witness.padded_tokens)
    assert max(errors(found, NAME)) <= LIMIT[torch.float32]
    plain = run(NAME, Way(mode="graph", attention=attention, chunk=16), like=found)
    assert differing(plain, found) == []


def test_padding_is_inert() -> None:
    """Coarse buckets: most of a step is padding, and the answers are the same but for rounding."""
    found = run(NAME, Way(mode="graph", chunk=16, buckets=COARSE))
    assert set(found.witness.padded_tokens) <= set(COARSE)
    rows = sum(step.num_tokens for step in found.plan)
    assert found.witness.ranks[0].padding_rows > 2 * rows
    assert max(errors(found, NAME)) <= LIMIT[torch.float32]


def test_a_second_run_of_the_same_engine_replays_what_the_first_recorded() -> None:
    """Inputs and output stay where they are: other requests leave nothing of theirs behind."""
    way = Way(mode="graph", chunk=16)
    shared = resources(NAME, way.mode, way.attention, way.kernels, way.dtype)
    with Engine(config(NAME, way), resources=shared) as engine:
        first = engine.run(asked(NAME))
        engine.run([request for request in asked(NAME) if request.num_tokens > 20])
        again = engine.run(asked(NAME), plan=first.plan)
    assert differing(first, again) == []
    assert again.witness.ranks[0].replays == len(first.plan)


@pytest.mark.parametrize("forgotten", ["x", "slot_mapping", "row_offsets", "block_tables"])
def test_a_recording_that_is_not_given_an_input_answers_wrong(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph reads persistent memory: what is not copied there is another step's."""
    right = run(NAME, Way(mode="graph", chunk=16))
    forget(forgotten, monkeypatch)
    assert differing(right, run(NAME, Way(mode="graph", chunk=16), like=right))

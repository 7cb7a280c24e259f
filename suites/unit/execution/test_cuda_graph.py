"""CUDA graphs and NCCL: what the CPU's stand-ins for them cannot show. Skipped without a device.

Passes wrongly if every step went through Python again instead of a capture. Ruled out by
suites/meta/test_suites_can_fail.py: `nothing-is-captured`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from engine.engine import Engine, RunResult
from engine.models.config import read_model_config
from harness.checkpoints.catalogue import path_of
from harness.judge.output import OutputKind
from harness.judge.tolerance import TABLE
from harness.record import Tier
from suites.parity.fleet import Fleet, Way, differing, relative_errors
from suites.parity.prompts import MIXED, requests

DEVICES = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(not DEVICES, reason="no CUDA device")
CHUNK = 16


@cache
def fleet() -> Fleet:
    return Fleet(path_of("tiny-qwen3"))


@cache
def run(way: Way) -> RunResult:
    wanted = requests(MIXED, vocabulary=read_model_config(path_of("tiny-qwen3")).vocab_size)
    way = replace(way, chunk=CHUNK, policy="threaded")
    config = replace(fleet().config(way), device="cuda")
    plan = None if way.mode == "eager" and way.tensor_ranks == 1 else run(Way()).plan
    with Engine(config) as engine:
        return engine.run(wanted, plan=plan)


def assert_near(found: RunResult, tier: Tier) -> None:
    """As near to float64 as the eager run on the same device, up to the tier's tolerance."""
    wanted = requests(MIXED, vocabulary=read_model_config(path_of("tiny-qwen3")).vocab_size)
    truth = fleet().truth(Way(chunk=CHUNK), wanted, run(Way()).plan)
    own, other = (max(relative_errors(r, truth)) for r in (run(Way()), found))
    tolerance = TABLE[tier, "float32", OutputKind.TOKEN_EMBEDDING, "33-128"]
    assert other <= max(tolerance.k * own, tolerance.floor)


@pytest.mark.parametrize("stages", [1, 2])
def test_captured_graphs_are_replayed_in_every_step(stages: int) -> None:
    way = Way(mode="graph", stages=stages, asynchronous=True, inputs="ring")
    found = run(way)
    for rank in found.witness.ranks:
        assert rank.replays == len(found.plan)
        assert rank.compiled_calls == 0, "a replay does not come back to Python"
        assert rank.eager_stages == len(found.plan) * 4 // stages, "attention, between the pieces"
    assert not found.witness.hazards
    assert_near(found, Tier.KERNEL)
    assert differing(run(Way(mode="graph")), found) == []


def test_ranks_of_one_process_sum_on_the_device() -> None:
    found = run(Way(tensor_ranks=2))
    assert all(rank.summands == 2 * rank.reductions > 0 for rank in found.witness.ranks)
    assert not found.witness.hazards
    assert_near(found, Tier.REORDERED)


@pytest.mark.skipif(DEVICES < 2, reason="NCCL wants a device for each of two ranks")
def test_ranks_as_processes_over_nccl_give_the_bits_of_ranks_inline() -> None:
    found = run(Way(tensor_ranks=2, executor="processes"))
    assert len(found.witness.pids) == 2
    assert differing(run(Way(tensor_ranks=2)), found) == []

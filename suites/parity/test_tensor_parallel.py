"""TP=2: the layer's arithmetic in another order, the same bits wherever its ranks run.

Passes wrongly if a sum had the same bits whether or not its ranks wait for each other. Ruled out by
`test_one_summand_buffer_is_a_hazard` and `test_a_sum_that_does_not_wait_for_its_peers_is_a_hazard`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import collectives
from engine.engine import RunResult
from engine.errors import ConfigurationError, WorkerError
from engine.models.config import read_model_config
from engine.request import PoolingRequest, Task
from harness.checkpoints.catalogue import path_of
from harness.judge.output import OutputKind
from harness.judge.tolerance import TABLE
from harness.record import Tier
from suites.figures import show
from suites.parity.fleet import Fleet, Way, differing, relative_errors
from suites.parity.prompts import MIXED, requests

CHUNK = 16
POLICIES = ("immediate", "threaded", "lag(compute@1)", "lag(copy@last)", "paced(1)")


class TensorParallel:
    """Owns: one checkpoint's fleet, and each mode's TP=1 and TP=2 run on one plan."""

    def __init__(self, name: str) -> None:
        self.fleet = Fleet(path_of(name))
        config = read_model_config(path_of(name))
        self.chunk = CHUNK if config.causal else None
        wanted = [(n, t) for n, t in MIXED if config.causal or t in (Task.EMBED, Task.TOKEN_EMBED)]
        self.requests: Sequence[PoolingRequest] = requests(wanted, vocabulary=config.vocab_size)
        self._runs: dict[tuple[str, int], RunResult] = {}

    def of(self, mode: str, ranks: int) -> RunResult:
        if (mode, ranks) not in self._runs:
            plan = None if (mode, ranks) == ("eager", 1) else self.of("eager", 1).plan
            way = Way(mode=mode, chunk=self.chunk, tensor_ranks=ranks)
            self._runs[mode, ranks] = self.fleet.run(way, self.requests, plan)
        return self._runs[mode, ranks]

    def replay(self, way: Way) -> RunResult:
        return self.fleet.run(
            replace(way, chunk=self.chunk), self.requests, self.of("eager", 1).plan
        )

    @property
    def truth(self) -> RunResult:
        return self.fleet.truth(Way(chunk=self.chunk), self.requests, self.of("eager", 1).plan)


@cache
def subject(name: str) -> TensorParallel:
    return TensorParallel(name)


def attest(run: RunResult, *, stages: int, layers: int, compiled: bool) -> None:
    """Every rank summed twice a layer and step, over two summands, and nothing was unordered."""
    ranks = run.witness.ranks
    assert len(ranks) == 2 * stages
    for rank in ranks:
        assert rank.reductions == 2 * len(run.plan) * layers // stages
        assert rank.summands == 2 * rank.reductions
        assert (rank.compiled_calls > 0) == compiled
        assert (rank.eager_stages == 0) == compiled
    assert not run.witness.hazards, run.witness.hazards


@pytest.mark.parametrize(
    ("name", "mode"), [("tiny-qwen3", "eager"), ("tiny-qwen3", "compiled"), ("tiny-bert", "eager")]
)
def test_two_ranks_are_as_near_to_float64_as_one(name: str, mode: str) -> None:
    case = subject(name)
    one, two, truth = case.of(mode, 1), case.of(mode, 2), case.truth
    attest(two, stages=1, layers=4, compiled=mode == "compiled")
    assert all(rank.reductions == 0 for rank in one.witness.ranks)
    own, other = max(relative_errors(one, truth)), max(relative_errors(two, truth))
    tolerance = TABLE[Tier.REORDERED, "float32", OutputKind.TOKEN_EMBEDDING, "33-128"]
    show(
        f"{name}, {mode}: largest relative distance from float64", ("TP=1", "TP=2"), [(own, other)]
    )
    assert other <= max(tolerance.k * own, tolerance.floor)
    # Sums in another order are other sums: the same bits would mean that nothing was divided.
    assert differing(one, two)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_stages_scheduling_buffers_and_policy_change_no_bit(mode: str, policy: str) -> None:
    case = subject("tiny-qwen3")
    for asynchronous, stages in ((False, 2), (True, 1)):
        way = Way(
            mode=mode,
            asynchronous=asynchronous,
            stages=stages,
            tensor_ranks=2,
            policy=policy,
            inputs="ring" if asynchronous else "fenced",
        )
        run = case.replay(way)
        attest(run, stages=stages, layers=4, compiled=mode == "compiled")
        assert differing(case.of(mode, 2), run) == []


@settings(max_examples=15)
@given(
    choices=st.lists(st.integers(0, 9), max_size=40),
    stages=st.sampled_from([1, 2]),
    asynchronous=st.booleans(),
)
def test_drawn_interleavings_change_no_bit(
    choices: list[int],
    stages: int,
    asynchronous: bool,  # noqa: FBT001 - Hypothesis passes it by name
) -> None:
    case = subject("tiny-qwen3")
    way = Way(
        tensor_ranks=2,
        stages=stages,
        asynchronous=asynchronous,
        policy=f"drawn({','.join(map(str, choices))})",
        inputs="ring",
    )
    run = case.replay(way)
    assert not run.witness.hazards, run.witness.hazards
    assert differing(case.of("eager", 2), run) == []


def test_one_summand_buffer_is_a_hazard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two in turn are needed: with one, a rank overwrites what a peer has yet to add."""
    case = subject("tiny-qwen3")
    right = case.of("eager", 2)  # before the patch: every test of this process compares with it
    monkeypatch.setattr(collectives, "SUMMAND_BUFFERS", 1)
    run = case.replay(Way(tensor_ranks=2, policy="lag(compute@1)"))
    assert any("summand0@0" in hazard for hazard in run.witness.hazards), run.witness.hazards
    assert differing(right, run)


def test_a_sum_that_does_not_wait_for_its_peers_is_a_hazard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = subject("tiny-qwen3")
    case.of("eager", 1)
    collect = collectives.InlineAllReduce._collect

    def at_once(self: collectives.InlineAllReduce, stream: object, turn: int, rows: int) -> object:
        class Deaf:
            def wait(self, event: object) -> None:
                pass

        return collect(self, Deaf(), turn, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(collectives.InlineAllReduce, "_collect", at_once)
    run = case.replay(Way(tensor_ranks=2, policy="lag(compute@1)"))
    assert any("summand" in hazard for hazard in run.witness.hazards), run.witness.hazards


def test_ranks_as_processes_give_the_bits_of_ranks_inline() -> None:
    """gloo gathers what inline reads in place; both add in order of rank."""
    case = subject("tiny-qwen3")
    way = Way(tensor_ranks=2, executor="processes", inputs="ring", asynchronous=True)
    with case.fleet.engine(replace(way, chunk=case.chunk)) as engine:
        for _ in range(2):
            run = engine.run(case.requests, plan=case.of("eager", 1).plan)
            attest(run, stages=1, layers=4, compiled=False)
            assert len(run.witness.pids) == 2
            assert differing(case.of("eager", 2), run) == []
            # As a terminal's interrupt does, which is the driver's to act on: the second run works.
            for pid in run.witness.pids:
                os.kill(pid, signal.SIGINT)
        os.kill(run.witness.pids[0], signal.SIGKILL)
        with pytest.raises(WorkerError, match=r"rank [01] .*(died with exit code -9|raised)"):
            engine.run(case.requests)


def test_more_ranks_than_divide_a_layer_are_refused_at_start_up() -> None:
    case = subject("tiny-qwen3")
    with pytest.raises(ConfigurationError, match=r"tensor_parallel_size=4 .*one of \[1, 2\]"):
        case.fleet.engine(Way(tensor_ranks=4))

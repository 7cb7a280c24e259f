"""The same recorded plan gives the same bits, however it is scheduled, placed and streamed (law 6).

Every run here also has to prove that it did what its name says, and that no step read or wrote a
buffer unordered.

Passes wrongly if no buffer was ever read late, fenced and awaited or not. Ruled out by
`test_without_the_fence_a_lagging_device_reads_other_inputs`,
`test_a_missing_fence_is_a_hazard_under_every_policy`,
`test_an_unawaited_send_shows_when_the_receiver_lags` and
`test_an_unawaited_send_is_a_hazard_under_every_policy`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import RunResult
from engine.models.config import read_model_config
from engine.plan import plan_digest
from engine.request import PoolingRequest
from harness.axes import AXES
from harness.axes.overlap import cannot_overlap
from harness.checkpoints.catalogue import path_of
from suites.figures import show
from suites.parity.fleet import Fleet, Way, differing
from suites.parity.prompts import MIXED, requests

# One worker: what is compared has to come from one process, and its graphs are counted there.
pytestmark = [pytest.mark.xdist_group("tiny-qwen3"), pytest.mark.timeout(600)]

CHUNK = 16
MODES = ("eager", "compiled")
POLICIES = (
    "immediate",
    "threaded",
    "lag(compute@first)",
    "lag(compute@last)",
    "lag(copy@last)",
    "paced(1)",
    "drawn(1,0,2,0,3,5,0,0,4)",
)
WITHOUT_FENCE = ("suites.parity.plugins:without_fence",)
WITHOUT_AWAITED_SEND = ("suites.parity.plugins:without_awaited_send",)


class Reference:
    """Owns: the fleet, and for each (mode, chunk) the run that all others are held to."""

    def __init__(self) -> None:
        self.fleet = Fleet(path_of("tiny-qwen3"))
        vocabulary = read_model_config(path_of("tiny-qwen3")).vocab_size
        self.requests: Sequence[PoolingRequest] = requests(MIXED, vocabulary=vocabulary)
        self._runs: dict[tuple[str, int | None], RunResult] = {}
        self.graphs_of_workers: list[int] = []

    def of(self, mode: str, chunk: int | None) -> RunResult:
        """The plainest run in this mode on the plan that the plainest eager run recorded."""
        if (mode, chunk) not in self._runs:
            plan = None if mode == "eager" else self.of("eager", chunk).plan
            run = self.fleet.run(Way(mode=mode, chunk=chunk), self.requests, plan)
            assert not run.witness.hazards, run.witness.hazards
            self._runs[mode, chunk] = run
        return self._runs[mode, chunk]

    def replay(self, way: Way) -> RunResult:
        return self.fleet.run(way, self.requests, self.of("eager", way.chunk).plan)

    def check(self, way: Way, run: RunResult) -> None:
        """The run did what `way` says, in order, and gave the reference's bits."""
        reference, witness = self.of(way.mode, way.chunk), run.witness
        attest(way, run)
        assert witness.plan_digest == plan_digest(reference.plan)
        assert witness.padded_tokens == reference.witness.padded_tokens
        assert witness.flags == reference.witness.flags
        assert [rank.num_threads for rank in witness.ranks] == [1] * way.stages
        assert not witness.hazards, witness.hazards
        assert differing(reference, run) == []


def attest(way: Way, run: RunResult) -> None:
    """Every axis took effect, as far as this policy can promise that steps overlap."""
    witness = run.witness.to_json()
    for name, axis in AXES.items():
        if name == "async" and cannot_overlap(way.cell, way.settings):
            continue
        # Real threads overlap when the machine lets them; every other policy decides it.
        if name == "async" and way.policy == "threaded":
            continue
        assert axis.witnessed(way.cell, witness) is None


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference()


def test_the_plan_is_worth_replaying(reference: Reference) -> None:
    whole, chunked = reference.of("eager", None), reference.of("eager", CHUNK)
    assert len(whole.plan) >= 4
    assert len(chunked.plan) >= 12
    assert whole.witness.max_chunks == 1
    assert chunked.witness.max_chunks >= 4
    assert any(not step.finishes_any for step in chunked.plan)
    assert any(len(step.entries) > 1 for step in chunked.plan)
    # Compiled arithmetic is other arithmetic: were it the same bits, nothing would show it ran.
    assert differing(whole, reference.of("compiled", None))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("chunk", [None, CHUNK])
@pytest.mark.parametrize("mode", MODES)
def test_scheduling_stages_buffers_and_policy_change_no_bit(
    reference: Reference, mode: str, chunk: int | None, policy: str
) -> None:
    for asynchronous, stages, inputs in itertools.product(
        (False, True), (1, 2), ("fenced", "ring")
    ):
        way = Way(
            mode=mode,
            chunk=chunk,
            asynchronous=asynchronous,
            stages=stages,
            policy=policy,
            inputs=inputs,
        )
        reference.check(way, reference.replay(way))


@settings(max_examples=25)
@given(
    choices=st.lists(st.integers(0, 6), max_size=60),
    mode=st.sampled_from(MODES),
    chunk=st.sampled_from([None, CHUNK]),
    asynchronous=st.booleans(),
    stages=st.sampled_from([1, 2]),
    inputs=st.sampled_from(["fenced", "ring"]),
)
def test_drawn_interleavings_change_no_bit(
    reference: Reference,
    choices: list[int],
    mode: str,
    chunk: int | None,
    asynchronous: bool,  # noqa: FBT001 - Hypothesis passes it by name
    stages: int,
    inputs: str,
) -> None:
    way = Way(
        mode=mode,
        chunk=chunk,
        asynchronous=asynchronous,
        stages=stages,
        policy=f"drawn({','.join(map(str, choices))})",
        inputs=inputs,
    )
    reference.check(way, reference.replay(way))


@pytest.mark.parametrize(
    "way",
    [
        Way(mode="eager", asynchronous=True, policy="lag(copy@last)", inputs="ring"),
        pytest.param(
            Way(mode="compiled", policy="threaded", inputs="fenced"), marks=pytest.mark.nightly
        ),
    ],
    ids=lambda way: way.mode,
)
def test_stages_as_processes_change_no_bit(reference: Reference, way: Way) -> None:
    # Small enough a budget to chunk, large enough for the whole prompts' plan as well.
    budget = max(step.num_tokens for step in reference.of("eager", None).plan)
    way = replace(way, stages=2, executor="processes")
    with reference.fleet.engine(replace(way, chunk=budget)) as engine:
        for chunk in (None, CHUNK, None):
            run = engine.run(reference.requests, plan=reference.of("eager", chunk).plan)
            reference.check(replace(way, chunk=chunk), run)
            assert len(run.witness.pids) == 2
            assert os.getpid() not in run.witness.pids
        if way.mode == "compiled":
            reference.graphs_of_workers = [rank.graphs for rank in run.witness.ranks]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("mode", MODES)
def test_without_the_fence_a_lagging_device_reads_other_inputs(
    reference: Reference, mode: str, *, asynchronous: bool
) -> None:
    """One stage only. With two, each send and receive pulls the step before it through either
    stage in time, whichever lags: the next test's hazards are what is left to see."""
    way = Way(
        mode=mode,
        chunk=CHUNK,
        asynchronous=asynchronous,
        policy="lag(compute@first)",
        plugins=WITHOUT_FENCE,
    )
    assert differing(reference.of(mode, CHUNK), reference.replay(way))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_missing_fence_is_a_hazard_under_every_policy(
    reference: Reference, mode: str, policy: str
) -> None:
    for stages in (1, 2):
        way = Way(mode=mode, chunk=CHUNK, stages=stages, policy=policy, plugins=WITHOUT_FENCE)
        hazards = reference.replay(way).witness.hazards
        assert any("staging" in hazard for hazard in hazards), hazards


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("mode", MODES)
def test_an_unawaited_send_shows_when_the_receiver_lags(
    reference: Reference, mode: str, *, asynchronous: bool
) -> None:
    way = Way(
        mode=mode,
        chunk=CHUNK,
        asynchronous=asynchronous,
        stages=2,
        policy="lag(compute@1)",
        plugins=WITHOUT_AWAITED_SEND,
    )
    run = reference.replay(way)
    assert differing(reference.of(mode, CHUNK), run)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES)
def test_an_unawaited_send_is_a_hazard_under_every_policy(
    reference: Reference, mode: str, policy: str
) -> None:
    way = Way(mode=mode, chunk=CHUNK, stages=2, policy=policy, plugins=WITHOUT_AWAITED_SEND)
    hazards = reference.replay(way).witness.hazards
    assert any("hidden@0" in hazard for hazard in hazards), hazards


def test_one_graph_served_every_step(reference: Reference) -> None:
    """Runs last. One graph for both plans, all stages, layers, buffers and schedules."""
    graphs = []
    for chunk, stages in itertools.product((None, CHUNK), (1, 2)):
        run = reference.replay(Way(mode="compiled", chunk=chunk, stages=stages))
        assert run.witness.compiled_calls > 0
        assert run.witness.eager_stages == 0
        graphs += [rank.graphs for rank in run.witness.ranks]
    show("graphs built", ("inline", "workers"), [(max(graphs), str(reference.graphs_of_workers))])
    assert set(graphs) == {1}
    assert set(reference.graphs_of_workers) <= {1}
    assert reference.fleet.resources.compiler().graphs == 1

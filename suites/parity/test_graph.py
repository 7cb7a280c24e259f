"""Graph replay: the compiled callable's bits on persistent memory, at the same padded size.

Passes wrongly if a recording found its inputs where they are made, and persistent memory did not
matter. Ruled out by `test_a_recording_that_is_not_given_an_input_answers_wrong`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine import assembly
from engine.engine import RunResult
from engine.execution.graph import GraphExecution
from engine.execution.regions import REGIONS
from engine.models.config import read_model_config
from harness.checkpoints.catalogue import path_of
from harness.judge.output import OutputKind
from harness.judge.tolerance import TABLE
from harness.record import Tier
from suites.figures import show
from suites.forgetful import forget
from suites.parity.fleet import Fleet, Way, differing, relative_errors
from suites.parity.prompts import MIXED, requests

CHUNK, LAYERS = 16, 4
POLICIES = ("immediate", "threaded", "lag(compute@last)", "lag(copy@last)", "paced(1)")
COARSE = (8, 64)


class Subject:
    """Owns: a fleet, and the compiled run that graph runs are held to."""

    def __init__(self) -> None:
        self.fleet = Fleet(path_of("tiny-qwen3"))
        vocabulary = read_model_config(path_of("tiny-qwen3")).vocab_size
        self.requests = requests(MIXED, vocabulary=vocabulary)
        self.compiled = self.fleet.run(Way(mode="compiled", chunk=CHUNK), self.requests)

    @property
    def buckets(self) -> tuple[int, ...]:
        """A bucket for each size that the compiled run padded its steps to."""
        return tuple(sorted({*self.compiled.witness.padded_tokens, CHUNK}))

    def replay(self, way: Way, *, taps: bool = False) -> RunResult:
        with self.fleet.engine(replace(way, chunk=CHUNK)) as engine:
            return engine.run(self.requests, plan=self.compiled.plan, taps=taps)


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject()


def attest(run: RunResult, buckets: Sequence[int], *, stages: int = 1) -> None:
    for rank in run.witness.ranks:
        assert rank.replays == len(run.plan)
        assert set(rank.buckets) == set(run.witness.padded_tokens) <= set(buckets)
        assert rank.compiled_calls == len(run.plan) * LAYERS // stages
        assert rank.eager_stages == 0
        assert rank.graphs == 1
    assert not run.witness.hazards, run.witness.hazards


@pytest.mark.parametrize("policy", POLICIES)
def test_the_compiled_callables_bits_at_equal_padded_sizes(subject: Subject, policy: str) -> None:
    for asynchronous, stages in ((False, 2), (True, 1), (True, 2)):
        way = Way(
            mode="graph",
            graph_buckets=subject.buckets,
            asynchronous=asynchronous,
            stages=stages,
            policy=policy,
            inputs="ring" if asynchronous else "fenced",
        )
        run = subject.replay(way)
        attest(run, subject.buckets, stages=stages)
        assert run.witness.padded_tokens == subject.compiled.witness.padded_tokens
        assert differing(subject.compiled, run) == []


def test_padding_is_inert(subject: Subject) -> None:
    """Coarse buckets: most of a step is padding, other kernels may run, nothing else changes."""
    way = Way(mode="graph", graph_buckets=COARSE)
    run = subject.replay(way)
    attest(run, COARSE)
    assert set(run.witness.padded_tokens) == set(COARSE)
    assert run.witness.ranks[0].padding_rows > 2 * sum(step.num_tokens for step in run.plan)
    truth = subject.fleet.truth(Way(chunk=CHUNK), subject.requests, subject.compiled.plan)
    own, other = (max(relative_errors(r, truth)) for r in (subject.compiled, run))
    tolerance = TABLE[Tier.KERNEL, "float32", OutputKind.TOKEN_EMBEDDING, "33-128"]
    show("largest relative distance from float64", ("compiled", "graph"), [(own, other)])
    assert other <= max(tolerance.k * own, tolerance.floor)


def test_the_same_buckets_give_the_same_bits_whatever_else_changes(subject: Subject) -> None:
    way = Way(mode="graph", graph_buckets=COARSE)
    plain = subject.replay(way)
    other = replace(way, stages=2, asynchronous=True, policy="lag(copy@last)", inputs="ring")
    assert differing(plain, subject.replay(other)) == []


def test_taps_are_the_compiled_layers(subject: Subject) -> None:
    graph = subject.replay(Way(mode="graph", graph_buckets=subject.buckets), taps=True)
    compiled = subject.replay(Way(mode="compiled"), taps=True)
    assert len(graph.taps) == len(compiled.taps) > LAYERS
    for a, b in zip(graph.taps, compiled.taps, strict=True):
        assert (a.request_id, a.layer, a.step) == (b.request_id, b.layer, b.step)
        assert torch.equal(a.rows, b.rows)


@pytest.mark.parametrize("forgotten", ["x", "slot_mapping", "row_offsets", "block_tables"])
def test_a_recording_that_is_not_given_an_input_answers_wrong(
    subject: Subject, forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every input is read from persistent memory: what is not copied is another step's."""
    forget(forgotten, monkeypatch)
    run = subject.replay(Way(mode="graph", graph_buckets=subject.buckets))
    assert differing(subject.compiled, run)


class Plain:
    """In a compiler's place: the regions as they are written."""

    graphs = 0

    def prime(self, stage: Any, regions: Sequence[str]) -> None:
        pass

    def __call__(self, region: str, *args: Any) -> tuple[Any, int]:
        return REGIONS[region](*args), 1


@pytest.mark.parametrize("piecewise", [False, True])
def test_pieces_around_attention_are_the_stage(
    *, piecewise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What CUDA records where attention cannot be; here without a compiler, so eager bits."""

    def built(compiler: Any, buckets: Any, record: Any, **_: Any) -> GraphExecution:
        return GraphExecution(compiler, buckets, record, piecewise=piecewise)

    monkeypatch.setattr(assembly, "GraphExecution", built)
    fleet = Fleet(path_of("tiny-qwen3"))
    fleet.resources._compilers[1] = Plain()  # type: ignore[assignment]
    wanted = requests(MIXED, vocabulary=read_model_config(path_of("tiny-qwen3")).vocab_size)
    eager = fleet.run(Way(chunk=CHUNK), wanted)
    buckets = tuple(sorted({*eager.witness.padded_tokens, CHUNK}))
    for stages in (1, 2):
        way = Way(mode="graph", graph_buckets=buckets, chunk=CHUNK, stages=stages)
        run = fleet.run(way, wanted, eager.plan)
        assert differing(eager, run) == []
        assert all(rank.replays == len(run.plan) for rank in run.witness.ranks)
        attended = sum(rank.eager_stages for rank in run.witness.ranks)
        assert attended == (len(run.plan) * LAYERS if piecewise else 0)

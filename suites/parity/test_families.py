"""Every family: compiled as eager, chunked as whole, two stages as one; or refused with a reason.

tiny-qwen3 has the whole lattice in `test_exactness.py`; the others have one case of each.

Passes wrongly if the stages of these families did without the counters that each of them keeps.
Ruled out by suites/meta/test_suites_can_fail.py: `the-first-stage-does-not-count`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.engine import Engine, RunResult
from engine.errors import ConfigurationError
from engine.models.config import read_model_config
from engine.request import Task
from harness.checkpoints.catalogue import CHECKPOINTS, path_of
from harness.judge.output import OutputKind
from harness.judge.tolerance import ORACLE_CAP
from suites.parity.fleet import Fleet, Way, differing
from suites.parity.prompts import MIXED, requests

pytestmark = pytest.mark.timeout(600)  # each family compiles once

NAMES = (
    "tiny-qwen2",
    "tiny-mistral",
    "tiny-gemma3",
    "tiny-roberta",
    "tiny-modernbert",
    "tiny-distilbert",
)
CHUNK = 16
BOUND = ORACLE_CAP["float32", OutputKind.EMBEDDING].floor
"""Relative: the acceptance bar for float32, which two honest runs may not exceed between them."""


class Family:
    """Owns: the fleet of one checkpoint and the runs made so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.causal = CHECKPOINTS[name].kind == "decoder"
        self.fleet = Fleet(path_of(name))
        scored = CHECKPOINTS[name].reranker is not None
        wanted = [
            (length, task)
            for length, task in MIXED
            if scored or task not in (Task.CLASSIFY, Task.TOKEN_CLASSIFY)
        ]
        drawn = requests(wanted, vocabulary=read_model_config(path_of(name)).vocab_size)
        # No special tokens: RoBERTa gives its padding token no position.
        self.requests = [
            replace(r, token_ids=tuple(max(token, 10) for token in r.token_ids)) for r in drawn
        ]
        self._runs: dict[Way, RunResult] = {}

    def run(self, way: Way, like: Way | None = None) -> RunResult:
        """One run; `like`: on the plan that another run recorded."""
        if way not in self._runs:
            plan = None if like is None else self.run(like).plan
            self._runs[way] = self.fleet.run(way, self.requests, plan)
        return self._runs[way]

    def distance(self, a: RunResult, b: RunResult) -> float:
        """Relative L2 distance of all outputs together, in float64."""
        x, y = (
            torch.cat([run.outputs[r.request_id].values.double().flatten() for r in self.requests])
            for run in (a, b)
        )
        return float((x - y).norm() / y.norm())


@pytest.fixture(scope="module", params=NAMES)
def family(request: pytest.FixtureRequest) -> Family:
    name: str = request.param
    return Family(name)


def test_compiled_is_eager_but_for_roundoff(family: Family) -> None:
    eager, compiled = family.run(Way()), family.run(Way(mode="compiled"), like=Way())
    (rank,) = compiled.witness.ranks
    assert (rank.graphs, rank.eager_stages) == (1, 0)
    assert rank.compiled_calls == 4 * len(compiled.plan)
    assert 0 < family.distance(compiled, eager) <= BOUND


def test_chunks_are_the_whole_or_are_refused(family: Family) -> None:
    if not family.causal:
        with pytest.raises(ConfigurationError, match=r"attends to tokens after it.*Turn chunked_"):
            Engine(family.fleet.config(Way(chunk=CHUNK)))
        return
    whole, chunked = family.run(Way()), family.run(Way(chunk=CHUNK))
    assert whole.witness.max_chunks == 1
    assert chunked.witness.max_chunks == -(-max(n for n, _ in MIXED) // CHUNK)
    assert family.distance(chunked, whole) <= BOUND


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_two_stages_change_no_bit(family: Family, mode: str) -> None:
    chunk = CHUNK if family.causal else None
    one = Way(mode=mode, chunk=chunk)
    plain = Way(chunk=chunk)
    two = family.run(replace(one, stages=2, policy="lag(compute@last)"), like=plain)
    assert len(two.witness.ranks) == 2
    assert not two.witness.hazards
    single = family.run(one, like=None if one == plain else plain)
    assert differing(single, two) == []

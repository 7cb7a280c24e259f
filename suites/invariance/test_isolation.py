"""What goes wrong with one request stays with it: its company has the bits it has without.

Each run is held to one in which a healthy request of the same length stands in the sick one's
place, so both follow the same plan and not a bit may differ.

Passes wrongly if the sick request had no company in its steps, or NaN could not reach it. Ruled out
by suites/meta/test_suites_can_fail.py: `every-row-touches-every-other`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch

from engine.config import ExecutionConfig
from engine.engine import Engine, RunResult
from engine.models.config import read_model_config
from engine.request import PoolingParams, PoolingRequest, Task
from harness.checkpoints.catalogue import CHECKPOINTS, path_of
from suites.invariance.blighted import BLIGHT, BLIGHTED, TWIN, with_token
from suites.parity.fleet import Fleet, Way, differing
from suites.parity.memory import Engines, Memory
from suites.parity.memory import requests as cramped
from suites.parity.prompts import MIXED, requests
from suites.unit.server.gates import FAILING_HEAD, FAILS

pytestmark = pytest.mark.timeout(600)  # some ways compile

SICK = ("2", "3")
"""A prompt of several chunks that is embedded, and one whose every token is."""
EAGER, COMPILED = Way(chunk=16), Way(chunk=16, mode="compiled")
WAYS = (
    ("tiny-qwen3", EAGER),
    ("tiny-qwen3", replace(EAGER, asynchronous=True, stages=2, policy="lag(compute@first)")),
    ("tiny-qwen3", COMPILED),
    ("tiny-qwen3", replace(COMPILED, mode="graph")),
    ("tiny-mistral", EAGER),
    ("tiny-gemma3", Way()),
    ("tiny-bert", Way()),
    ("tiny-bert", Way(mode="compiled")),
    ("tiny-modernbert", Way()),
)


def prompts(name: str, token: int) -> list[PoolingRequest]:
    """Mixed requests, with this token in the middle of the sick ones and in no other."""
    scored = CHECKPOINTS[name].reranker is not None
    wanted = [
        (length, task)
        for length, task in MIXED
        if scored or task not in (Task.CLASSIFY, Task.TOKEN_CLASSIFY)
    ]
    drawn = requests(wanted, vocabulary=read_model_config(path_of(name)).vocab_size)
    return [with_token(r, token if r.request_id in SICK else TWIN) for r in drawn]


def held(well: RunResult, sick: RunResult, names: Sequence[str] = SICK) -> None:
    """The sick ones alone differ, and say so."""
    assert well.plan == sick.plan
    assert not sick.witness.hazards
    assert all(torch.isfinite(output.values).all() for output in well.outputs.values())
    assert differing(well, sick) == sorted(names)
    for name in names:
        assert torch.isnan(sick.outputs[name].values).any()


@pytest.mark.parametrize(("name", "way"), WAYS, ids=str)
def test_a_row_that_is_not_a_number_stays_where_it_is(name: str, way: Way) -> None:
    with Fleet(path_of(name)).engine(replace(way, plugins=(BLIGHTED,))) as engine:
        well, sick = (engine.run(prompts(name, token)) for token in (TWIN, BLIGHT))
    assert any(
        len(step.entries) > 1 and {e.request_id for e in step.entries} & set(SICK)
        for step in sick.plan
    ), "the sick ones had no company"
    held(well, sick)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Who computes attention, in which dtype."""

    attention: str
    dtype: str = "float32"
    batch_invariant: bool = False


@pytest.mark.parametrize(
    "backend",
    [
        Backend(attention="naive"),
        Backend(attention="sdpa", batch_invariant=True),
        Backend(attention="sdpa", dtype="bfloat16"),
    ],
    ids=str,
)
def test_whoever_computes_attention_keeps_rows_apart(backend: Backend) -> None:
    fleet = Fleet(path_of("tiny-qwen3"))
    execution = ExecutionConfig(
        attention=backend.attention,
        dtype=backend.dtype,
        batch_invariant=backend.batch_invariant,
    )
    way = replace(EAGER, plugins=(BLIGHTED,))
    with Engine(replace(fleet.config(way), execution=execution)) as engine:
        well, sick = (engine.run(prompts("tiny-qwen3", token)) for token in (TWIN, BLIGHT))
    assert well.plan == sick.plan
    assert [n for n in well.outputs if torch.isnan(sick.outputs[n].values).any()] == list(SICK)
    for name in well.outputs.keys() - set(SICK):
        assert torch.equal(well.outputs[name].values, sick.outputs[name].values)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_blocks_that_held_it_are_used_again(*, asynchronous: bool) -> None:
    """A small pool hands what the sick one wrote to the next, preempted and cached ones too."""
    memory = Memory(num_blocks=5, prefix_cache=True, asynchronous=asynchronous, plugins=(BLIGHTED,))
    drawn = cramped((60, 50, 40, 55, 45), shared=34, tasks=(Task.EMBED, Task.TOKEN_EMBED))

    def with_second(token: int) -> list[PoolingRequest]:
        return [with_token(r, token if r.request_id == "r1" else TWIN) for r in drawn]

    with Engines(path_of("tiny-qwen3")).open(memory) as engine:
        well, sick = (engine.run(with_second(token)) for token in (TWIN, BLIGHT))
    assert sum(sick.witness.memory.preemptions.values()) > 0
    assert sick.witness.memory.evictions > 0
    held(well, sick, ["r1"])


# ------------------------------------------------------------------------------- a head that raises


def asking(fails: bool) -> list[PoolingRequest]:  # noqa: FBT001
    """Embeddings of mixed lengths; two of them asked for what the planted head fails on, or not."""
    drawn = requests([(n, Task.EMBED) for n, _ in MIXED], vocabulary=900)
    wrong = PoolingParams(dimensions=FAILS if fails else FAILS + 1)
    return [replace(r, params=wrong) if r.request_id in SICK else r for r in drawn]


@pytest.mark.parametrize(
    "way",
    [
        EAGER,
        replace(EAGER, asynchronous=True, inputs="ring", policy="lag(copy@last)"),
        replace(EAGER, stages=2, executor="processes", policy="threaded"),
    ],
    ids=str,
)
def test_a_head_that_raises_fails_its_own_request(way: Way) -> None:
    with Fleet(path_of("tiny-qwen3")).engine(replace(way, plugins=(FAILING_HEAD,))) as engine:
        well, sick = (engine.run(asking(fails)) for fails in (False, True))
        assert dict(sick.failed) == dict.fromkeys(SICK, "ValueError: this head is planted")
        assert not well.failed
        assert well.plan == sick.plan
        kept = replace(well, outputs={n: o for n, o in well.outputs.items() if n not in SICK})
        assert differing(kept, sick) == []
        again = engine.run(asking(fails=False))
    assert differing(well, again) == [], "the engine goes on as if nothing had happened"

"""Through the server or not: the same rows, by the campaign's own executor, relator and judge.

Passes wrongly if the judge took any two answers for the same, or the server were never asked. Ruled
out by `test_a_server_that_mixes_up_its_answers_is_caught`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine.request import PoolingOutput
from engine.server.service import Service
from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.profile import FENCED_COPY_LAGS, CheckpointPlan
from harness.campaign.reference import CaseReference
from harness.campaign.relate import RelationPlan, Relator
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.oracle.oracle import Oracle
from harness.record import Comparison, Outcome, PairRecord, Tier
from harness.systems.base import Assignment, SystemFailed
from harness.systems.engine import EngineSystem, engine
from suites.parity.memory import prompt

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

NAME, CHUNK, LIMIT = "tiny-qwen3", 16, 192
PLAN = CheckpointPlan(
    name=NAME, cases=1, chunk=CHUNK, max_num_seqs=2, max_model_len=LIMIT, max_case_tokens=LIMIT
)
IDS = tuple(Prompt(tokens=prompt(n, i)) for i, n in enumerate((40, 7, 33)))
PAIRS = tuple(
    Prompt(query="What is rain?", document=text)
    for text in ("Rain is water that falls.", "A bridge over the river.")
)
CASES = (
    Case(task="embed", prompts=IDS, dimensions=32),
    Case(task="embed", prompts=(Prompt(text="Snow."), Prompt(text="A long bridge of stone."))),
    Case(task="token_embed", prompts=IDS, normalize=False),
    Case(task="score", prompts=PAIRS, activation=False),
)


@pytest.fixture(scope="module")
def system() -> Iterator[EngineSystem]:
    found = engine(
        Assignment(
            checkpoint=checkpoint(NAME),
            folder=path_of(NAME),
            chunk=CHUNK,
            max_num_seqs=2,
            max_model_len=LIMIT,
        )
    )
    yield found
    found.close()


def judged(system: EngineSystem, folder: Path, cases: Sequence[Case] = CASES) -> list[PairRecord]:
    """The pairs of the relation, of every case in all cells of two axes."""
    store = OutputStore(folder)
    executor = CaseExecutor(
        checkpoint=PLAN,
        system=system,
        reference=CaseReference(oracle=Oracle(path_of(NAME)), checkpoint=checkpoint(NAME)),
        store=store,
        attempts=1,
        axes=("chunk", "pp"),
        relator=Relator(
            plan=RelationPlan(names=("entry point",)),
            system=system,
            causal=True,
            vocabulary=1024,
            max_model_len=LIMIT,
        ),
    )
    records = [r for case in cases for r in executor.run(case, FENCED_COPY_LAGS)]
    judge = CheckpointJudge(dtype="float32", causal=True, store=store, chunk=CHUNK)
    return [
        record
        for record in judge.judge(executed(records)[NAME])
        if isinstance(record, PairRecord) and record.comparison is Comparison.RELATION
    ]


def test_the_server_answers_as_the_offline_engine_does(
    system: EngineSystem, tmp_path: Path
) -> None:
    pairs = judged(system, tmp_path)
    assert {pair.outcome for pair in pairs} == {Outcome.PASS}, [p.reason for p in pairs]
    assert [pair.tier for pair in pairs] == [Tier.EXACT] * len(CASES)


def test_a_server_that_mixes_up_its_answers_is_caught(
    system: EngineSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Service.pool

    async def exchanged(self: Service, *asked: object) -> list[PoolingOutput]:
        found = await right(self, *asked)  # type: ignore[arg-type]
        return [*found[1:], found[0]]

    monkeypatch.setattr(Service, "pool", exchanged)
    pairs = judged(system, tmp_path, CASES[:1])
    assert [pair.outcome for pair in pairs] == [Outcome.FAIL]
    assert "entry point, server" in pairs[0].reason


def test_a_server_that_refuses_a_case_is_an_error(system: EngineSystem) -> None:
    baseline = {"compile": "eager", "chunk": "whole", "async": "sync", "pp": "1"}
    long = Case(task="embed", prompts=(Prompt(tokens=prompt(LIMIT + 1, 0)),))
    with pytest.raises(SystemFailed, match=f"expected at most {LIMIT}"):
        system.serve(baseline, FENCED_COPY_LAGS).run(long, system.encode(long))

"""Our server, judged through the HTTP adapter, gets the verdicts of the engine inside it.

Passes wrongly if verdicts were all that is compared, since one lost bit changes none of them. Ruled
out by suites/meta/test_suites_can_fail.py: `the-adapter-changes-a-bit`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case import Case, Prompt
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.oracle.oracle import Oracle
from harness.record import Comparison, Outcome, PairRecord
from harness.systems.base import Assignment, System
from harness.systems.engine import EngineOptions, EngineSystem
from harness.systems.http import http
from suites.contract.test_server import served
from suites.meta.judged import Judged, judged

pytestmark = pytest.mark.xdist_group("tiny-qwen3")

LONGEST = 320
IDS = tuple(range(20, 20 + 90))
CASES = (
    Case(task="embed", prompts=(Prompt(text="A bridge over the river."), Prompt(text="Rain."))),
    Case(task="embed", prompts=(Prompt(tokens=IDS), Prompt(tokens=IDS[:1]), Prompt(text="snow"))),
    Case(task="embed", prompts=(Prompt(tokens=IDS[:33]),), normalize=False),
    Case(task="token_embed", prompts=(Prompt(tokens=IDS[:17]), Prompt(text="Two rows."))),
    Case(
        task="score",
        prompts=tuple(
            Prompt(query="What is rain?", document=text)
            for text in ("Rain is water that falls.", "A bridge is closed.", "Two and two is four.")
        ),
    ),
    Case(
        task="score",
        prompts=(Prompt(query="a", document="b"), Prompt(query="c", document="d")),
        activation=False,
    ),
)


def oracle_pairs(found: Judged) -> list[PairRecord]:
    return [pair for pair in found.pairs if pair.comparison is Comparison.ORACLE]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(path_of("tiny-qwen3"))


def through(system: System, oracle: Oracle, folder: Path, settings: dict[str, str]) -> Judged:
    """Every case in the baseline cell, judged against float64."""
    try:
        return judged(system, oracle, folder, cases=CASES, settings=settings, axes=())
    finally:
        system.close()


def test_the_verdicts_are_those_of_the_engine_in_process(tmp_path: Path, oracle: Oracle) -> None:
    inside = EngineSystem(
        EngineOptions(
            model=path_of("tiny-qwen3"),
            chunk=LONGEST,
            max_num_seqs=8,
            max_model_len=LONGEST,
            batch_invariant=True,
        )
    )
    near = through(inside, oracle, tmp_path / "inside", dict(inside.settings[0]))
    with served(tmp_path, "--batch-invariant", "--max-model-len", str(LONGEST)) as server:
        outside = http(
            Assignment(
                checkpoint=checkpoint("tiny-qwen3"),
                folder=path_of("tiny-qwen3"),
                chunk=LONGEST,
                max_num_seqs=8,
                max_model_len=LONGEST,
                options={"url": server.url, "model": "tiny-qwen3"},
            )
        )
        far = through(outside, oracle, tmp_path / "outside", {})
    told = [(pair.case_id, pair.outcome, pair.reason) for pair in oracle_pairs(far)]
    assert told == [(pair.case_id, pair.outcome, pair.reason) for pair in oracle_pairs(near)]
    assert [outcome for _, outcome, _ in told] == [Outcome.PASS] * len(CASES), told
    assert not any(run.error for run in far.executions), [run.error for run in far.executions]
    # Not only the verdicts: the same bits, perturbed prompts included.
    assert [r.output_digest for r in far.executions] == [r.output_digest for r in near.executions]

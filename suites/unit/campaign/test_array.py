"""A share of the cases in a covering array: when there is one, and what it is asked for.

Passes wrongly if the covering array varied the primary axes only. Ruled out by
suites/meta/test_suites_can_fail.py: `the-array-has-no-further-axes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import findings
from harness.attribution import Replayed
from harness.axes import AXES, SECONDARY, Cell, baseline
from harness.axes.memory import may_act
from harness.campaign.outputs import OutputStore
from harness.campaign.recorder import Clock, Recorder, as_one_of
from harness.campaign.spec import Job, RunSpec
from harness.case import Case, Prompt
from harness.cli.request import manifest_of
from harness.findings import Finder, _in_array, replay_finding
from harness.judge.bounds import Bounds
from harness.record import FindingRecord, Outcome, TruthRow, record_from_json, to_json

NIGHTLY = RunSpec(profile="nightly", seed=3, checkpoints=("tiny-bert",), axes=tuple(AXES))
FINDING = FindingRecord(
    finding_id="f1",
    signature="s",
    title="t",
    checkpoint="tiny-bert",
    task="embed",
    outcome=Outcome.FAIL,
    case={},
    pairs=(),
    minimal_sets=(),
    masked_by=(),
    conditions=(),
    truth_table=(),
    metric="relative_l2",
    worst=1.0,
    bound=None,
    first_divergence=None,
)


def test_the_array_has_every_axis_and_cases_of_its_own() -> None:
    assert NIGHTLY.has_array("tiny-bert")
    array = NIGHTLY.in_array("tiny-bert")
    plan, whole = array.plan("tiny-bert"), NIGHTLY.plan("tiny-bert")
    assert array.axes == (*AXES, *SECONDARY)
    assert array.cover == whole.array_strength == 2
    assert (plan.cases, plan.shards) == (whole.array_cases, whole.array_shards)
    assert (plan.chunk, plan.max_model_len) == (whole.chunk, whole.max_model_len)
    assert not array.has_array("tiny-bert"), "it is that share already"
    assert RunSpec.from_json(array.to_json()) == array


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": ("chunk",)},
        {"cover": 2},
        {"production": {"compile": "compiled"}},
        {"cells": "alone"},
        {"cases_file": "cases.jsonl"},
        {"system": "hf"},
        {"sizes": {"array_cases": 0}},
        {"profile": "smoke"},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_a_request_that_says_what_to_run_gets_no_array(changes: dict[str, object]) -> None:
    assert not replace(NIGHTLY, **changes).has_array("tiny-bert")  # type: ignore[arg-type]


def test_the_manifest_names_every_axis_that_is_varied() -> None:
    named = [axis.name for axis in manifest_of(NIGHTLY, "run", [], ()).axes]
    assert named == [*AXES, *SECONDARY]
    without = manifest_of(replace(NIGHTLY, sizes={"array_cases": 0}), "run", [], ())
    assert [axis.name for axis in without.axes] == list(AXES)


def test_jobs_of_the_two_parts_are_told_apart() -> None:
    job = Job(checkpoint="tiny-bert", shard=0, num_shards=2, array=True)
    assert job.label == "tiny-bert array 1/2"
    assert replace(job, array=False).label == "tiny-bert 1/2"


def test_a_case_that_sets_a_secondary_axis_is_of_the_array() -> None:
    assert not _in_array([baseline(), Cell.of({**baseline(), "tp": "1"})])
    assert _in_array([baseline(), Cell.of({**baseline(), "tp": "2"})])


@contextmanager
def _no_bench(spec: RunSpec, asked: list[RunSpec]) -> Iterator[SimpleNamespace]:
    asked.append(spec)
    yield SimpleNamespace(system=None, reference=None)


@pytest.mark.parametrize(
    ("in_array", "cell", "array"),
    [
        (True, baseline(), True),
        (False, baseline(), False),
        (False, Cell.of({**baseline(), "tp": "2"}), True),
    ],
    ids=["of the array, no secondary axis", "of the lattice", "an older run's, by its axis"],
)
def test_a_finding_is_replayed_under_the_sizes_its_case_ran_under(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, in_array: bool, cell: Cell, array: bool
) -> None:
    """The array's share has a threshold of long prefills that the lattice's has not."""
    asked: list[RunSpec] = []
    monkeypatch.setattr(findings, "_workbench", lambda spec, *_: _no_bench(spec, asked))
    monkeypatch.setattr(findings, "replay", lambda *_, **__: Replayed(failing=True, rows=()))
    row = TruthRow(cell=cell, outcome=Outcome.FAIL, value=1.0)
    finding = replace(FINDING, in_array=in_array, truth_table=(row,))
    replay_finding(NIGHTLY, finding, tmp_path)
    assert asked == [NIGHTLY.in_array("tiny-bert") if array else NIGHTLY]


@pytest.mark.parametrize("cell", [baseline(), Cell.of({**baseline(), "tp": "2"})], ids=str)
def test_a_finding_says_which_share_its_cases_were_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cell: Cell
) -> None:
    monkeypatch.setattr(Finder, "_find", lambda *_: [FINDING])
    case = SimpleNamespace(
        case=SimpleNamespace(case_id="c"), executions=[SimpleNamespace(cell=cell)]
    )
    pair = SimpleNamespace(case_id="c", outcome=Outcome.FAIL)
    found = Finder(NIGHTLY, tmp_path).find("tiny-bert", [case], [pair], Bounds())  # type: ignore[list-item]
    assert [finding.in_array for finding in found] == ["tp" in cell and cell["tp"] == "2"]
    (again,) = (record_from_json(to_json(finding)) for finding in found)
    assert again == found[0]
    older = {k: v for k, v in to_json(FINDING).items() if k != "in_array"}
    assert record_from_json(older) == FINDING


def test_answers_of_every_row_do_not_run_where_the_prefix_cache_is_on() -> None:
    cached = Cell.of({**baseline(), "prefix_cache": "on"})
    assert may_act(cached, "embed")
    assert not may_act(cached, "token_embed")
    assert may_act(baseline(), "token_embed")


def test_two_checkpoints_that_share_a_case_share_no_execution(tmp_path: Path) -> None:
    case = Case(task="embed", prompts=(Prompt(tokens=(5, 6)),))
    own, followed = set(), set()
    for name in ("tiny-bert", "tiny-roberta"):
        recorder = Recorder(
            checkpoint=name,
            system=None,  # type: ignore[arg-type] - nothing is run
            store=OutputStore(tmp_path),
            attempts=1,
            clock=Clock(),
        )
        record = recorder.without_run(case, baseline(), {"inputs": "fenced"})
        assert record == recorder.without_run(case, baseline(), {"inputs": "fenced"})
        own.add(record.execution_id)
        followed.add(as_one_of(record, replace(case, normalize=False)).execution_id)
    assert len(own) == len(followed) == 2
    assert not own & followed

"""A share of the cases in a covering array: when there is one, and what it is asked for.

Passes wrongly if the covering array varied the primary axes only. Ruled out by
suites/meta/test_suites_can_fail.py: `the-array-has-no-further-axes`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.axes import AXES, SECONDARY, Cell, baseline
from harness.axes.memory import may_act
from harness.campaign.spec import Job, RunSpec
from harness.cli.request import manifest_of
from harness.findings import _in_array

NIGHTLY = RunSpec(profile="nightly", seed=3, checkpoints=("tiny-bert",), axes=tuple(AXES))


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


def test_answers_of_every_row_do_not_run_where_the_prefix_cache_is_on() -> None:
    cached = Cell.of({**baseline(), "prefix_cache": "on"})
    assert may_act(cached, "embed")
    assert not may_act(cached, "token_embed")
    assert may_act(baseline(), "token_embed")

"""A process that dies or hangs costs what it was on, says so, and leaves no orphan.

Passes wrongly if a worker's death was told and not counted. Ruled out by
suites/meta/test_suites_can_fail.py: `lost-cases-are-not-counted`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, executed, execution_of
from harness.campaign.local import MOST_LOSSES
from harness.campaign.outputs import OutputStore
from harness.campaign.profile import FENCED_COPY_LAGS, PROFILES
from harness.campaign.reference import CaseReference
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.oracle.cache import CachedOracle
from harness.record import (
    CaseEndRecord,
    CaseRecord,
    Comparison,
    ExecutionRecord,
    NoticeRecord,
    Outcome,
    PairRecord,
    Record,
)
from harness.systems.engine import EngineOptions, EngineSystem
from suites.contract.campaigns import ONE_CASE, PLUGINS, campaign
from suites.contract.misbehaving import LONG
from suites.contract.sessions import TEST_TIMEOUT_S, end_session, left_of, living, wait_for

ROOT = Path(__file__).resolve().parents[2]


def case(*words: str) -> Case:
    return Case(task="embed", prompts=tuple(Prompt(text=word * 4) for word in words))


# ----------------------------------------------------------------------------- ranks of an engine


def executor_of(system: EngineSystem, folder: Path) -> CaseExecutor:
    plan = PROFILES["smoke"].checkpoints[0]
    return CaseExecutor(
        checkpoint=plan,
        system=system,
        reference=CaseReference(
            oracle=CachedOracle(path_of(plan.name)), checkpoint=checkpoint(plan.name)
        ),
        store=OutputStore(folder),
        attempts=1,
        axes=("pp",),
    )


@pytest.mark.parametrize(
    ("plugin", "timeout_s", "told"),
    [
        ("kill_last_rank", 120.0, r"WorkerError: rank 1 \(pid \d+\) died with exit code -9"),
        ("hang_last_rank", 1.0, r"WorkerError: rank [01] \(pid \d+\) gave no answer within 1 s"),
    ],
)
def test_a_lost_rank_is_an_error_of_its_cell_only(
    tmp_path: Path, plugin: str, timeout_s: float, told: str
) -> None:
    plan = PROFILES["smoke"].checkpoints[0]
    system = EngineSystem(
        EngineOptions(
            model=path_of(plan.name),
            chunk=plan.chunk,
            max_num_seqs=1,
            max_model_len=64,
            worker_timeout_s=timeout_s,
        )
    )
    system.plant(f"{PLUGINS}:{plugin}")
    records: list[Record] = []
    try:
        executor = executor_of(system, tmp_path)
        records += executor.start()
        records += executor.run(case("one ", "two ", "three "), FENCED_COPY_LAGS, processes=True)
        records += executor.run(case("four ", "five "), FENCED_COPY_LAGS)
    finally:
        system.close()
    lost = [r for r in records if isinstance(r, ExecutionRecord) and r.error]
    assert [r.settings.get("executor") for r in lost] == ["processes"]
    assert_says(lost[0].error, told)
    judge = CheckpointJudge(dtype="float32", causal=True, store=OutputStore(tmp_path))
    pairs = [r for r in judge.judge(executed(records)[plan.name]) if isinstance(r, PairRecord)]
    errors = [pair for pair in pairs if pair.outcome is Outcome.ERROR]
    assert [pair.comparison for pair in errors] == [Comparison.SETTING]
    assert_says(errors[0].reason, told)
    assert {pair.outcome for pair in pairs if pair not in errors} == {Outcome.PASS}


def test_a_ranks_traceback_stays_in_its_record() -> None:
    told = "WorkerError: rank 1 raised ValueError: 7"
    record = ExecutionRecord(
        execution_id="x",
        case_id="y",
        checkpoint="tiny-qwen3",
        cell={},
        settings={},
        plan=None,
        plan_digest="",
        witness={},
        outputs="",
        output_digest="",
        error=f"{told}\nTraceback (most recent call last):\n  ...",
        seconds=0.0,
    )
    assert execution_of(record, ()).error == told


def assert_says(text: str, pattern: str) -> None:
    with pytest.raises(RuntimeError, match=pattern):
        raise RuntimeError(text)


# --------------------------------------------------------------------------- workers of a campaign


def notices(records: Sequence[Record]) -> list[str]:
    return [record.text for record in records if isinstance(record, NoticeRecord)]


@pytest.mark.nightly
def test_a_dead_worker_costs_its_own_checkpoint_only(tmp_path: Path) -> None:
    end, records = campaign(tmp_path, "kill_encoder_worker", "tiny-bert", "tiny-qwen3")
    (text,) = notices(records)
    assert_says(text, r"^tiny-bert: case \w+ was not finished: its worker died \(exit code -9\)$")
    assert end.exit_code == 2
    assert end.counts[Outcome.ERROR] == 1
    judged = {r.checkpoint for r in records if isinstance(r, PairRecord)}
    assert judged == {"tiny-qwen3"}
    assert end.counts[Outcome.PASS] >= 1


def prompts_of(records: Sequence[Record]) -> dict[str, str]:
    """Id of each case that was judged -> its first prompt."""
    judged = {r.case_id for r in records if isinstance(r, PairRecord)}
    return {
        r.case_id: str(r.case["prompts"][0])
        for r in records
        if isinstance(r, CaseRecord) and r.case_id in judged
    }


def of_tokens(*lengths: int) -> str:
    prompts = [{"tokens": [7 + n % 5] * n} for n in lengths]
    return json.dumps({"task": "embed", "prompts": prompts})


def test_a_case_that_kills_its_worker_costs_itself_only(tmp_path: Path) -> None:
    cases = (ONE_CASE, of_tokens(LONG, 3, 4), of_tokens(9, 8, 7))
    plugin = "kill_worker_on_long_prompt"
    end, records = campaign(tmp_path, plugin, "tiny-bert", cases=cases)
    (text,) = notices(records)
    assert_says(text, r"^tiny-bert: case \w+ was not finished: its worker died \(exit code -9\)$")
    assert dict(end.counts) | {Outcome.ERROR: 1} == dict(end.counts)
    ended = {r.case_id for r in records if isinstance(r, CaseEndRecord)}
    assert len(ended) == 2
    assert set(prompts_of(records)) == ended


@pytest.mark.nightly
def test_a_job_that_loses_workers_again_and_again_is_given_up(tmp_path: Path) -> None:
    cases = (*(of_tokens(LONG, n) for n in range(1, 5)), ONE_CASE)
    end, records = campaign(tmp_path, "kill_worker_on_long_prompt", "tiny-bert", cases=cases)
    *cases_lost, job_lost = notices(records)
    assert len(cases_lost) == MOST_LOSSES - 1
    assert_says(job_lost, r"^tiny-bert was not finished: its worker died .*, the last of 3$")
    assert dict(end.counts) == {Outcome.ERROR: MOST_LOSSES}
    assert end.exit_code == 2


def test_a_silent_worker_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The driver alone is impatient: in the worker, silence follows from the plug-in or from work.
    hasty = replace(PROFILES["smoke"], timeout_s=0.5)
    monkeypatch.setattr("harness.campaign.spec.PROFILES", {**PROFILES, "smoke": hasty})
    end, records = campaign(tmp_path, "hang_worker", "tiny-bert")
    told = notices(records)  # so little patience may end in the start-up of whoever goes on, too
    for text in told:
        assert_says(
            text, r"tiny-bert.* was not finished: its worker said nothing for \d+ s and was k"
        )
    assert end.exit_code == 2
    assert dict(end.counts) == {Outcome.ERROR: len(told)}


# ----------------------------------------------------------------------------------------- orphans

DRIVER = """
import sys
from pathlib import Path

from suites.contract.campaigns import campaign

if __name__ == "__main__":
    campaign(Path(sys.argv[1]), "hang_last_rank", "tiny-qwen3", profile="pr", axis="pp")
"""
"""Waits for a worker that waits for a rank that never answers."""


@pytest.mark.nightly
@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_no_process_outlives_a_killed_driver(tmp_path: Path) -> None:
    script, log, mark = tmp_path / "driver.py", tmp_path / "log", tmp_path / "hangs"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PARITY_HANG_MARK": str(mark)}
    with log.open("w") as stream:
        driver = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path)],
            env=environment,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        wait_for(mark.exists, driver, log)
        commands = living(driver.pid)
        assert len(commands) >= 4, f"a driver, its worker and two ranks, got {commands}"
        driver.kill()
        driver.wait()
        assert not left_of(driver.pid)
    finally:
        end_session(driver.pid)

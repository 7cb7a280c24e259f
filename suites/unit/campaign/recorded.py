"""A run of the toy system on disk, as `parity run` leaves one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.axes import AXES
from harness.campaign.execute import CaseExecutor
from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.outputs import OutputStore
from harness.campaign.spec import RunSpec
from harness.case import Case, Prompt
from harness.record import (
    CheckpointInfo,
    EndRecord,
    PairRecord,
    RunManifest,
    RunWriter,
    exit_code,
)
from suites.unit.attribution.toy import COPY_LAGS, PLAN, ToySystem, Truth

NAME = "tiny-qwen3"
LENGTHS = (40, 7, 33)


def case(task: str = "embed", start: int = 0, **parameters: bool) -> Case:
    """Prompts of LENGTHS whose tokens begin at `start`."""
    prompts = tuple(
        Prompt(tokens=tuple((start + 31 * i + 7 * j) % 590 for j in range(n)))
        for i, n in enumerate(LENGTHS)
    )
    return Case(task=task, prompts=prompts, **parameters)


CASES = (case(normalize=False), case("token_embed", 5, normalize=False))


def record(
    folder: Path,
    system: ToySystem,
    cases: Sequence[Case] = CASES,
    settings: Mapping[str, str] = COPY_LAGS,
    *,
    plants: tuple[str, ...] = (),
) -> list[PairRecord]:
    """Run the cases in every cell, judge and write everything; returns the pairs."""
    plan = replace(PLAN, name=NAME)
    spec = RunSpec(profile="smoke", seed=3, checkpoints=(NAME,), axes=tuple(AXES))
    manifest = RunManifest(
        run_id=folder.name,
        created="2026-01-01T00:00:00+00:00",
        command=("parity", "run", "--profile", "smoke", "--seed", "3"),
        seed=3,
        profile="smoke",
        settings=spec.to_json(),
        environment={},
        axes=tuple(axis.info for axis in AXES.values()),
        checkpoints=(
            CheckpointInfo(
                name=NAME,
                kind="decoder",
                origin="generated",
                dtype="float32",
                digest="0",
                num_parameters=1,
                num_layers=1,
            ),
        ),
        plants=plants,
    )
    writer, store = RunWriter(folder, manifest), OutputStore(folder)
    executor = CaseExecutor(
        checkpoint=plan,
        system=system,
        reference=Truth(),  # type: ignore[arg-type]
        store=store,
        attempts=1,
    )
    records = [r for one in cases for r in executor.run(one, settings)]
    judge = CheckpointJudge(dtype="float32", causal=True, store=store, chunk=plan.chunk)
    verdicts = list(judge.judge(executed(records)[NAME]))
    pairs = [r for r in verdicts if isinstance(r, PairRecord)]
    counts = Counter(str(pair.outcome) for pair in pairs)
    end = EndRecord(
        finished="2026-01-01T00:01:00+00:00",
        exit_code=exit_code(counts),
        counts=counts,
        seconds=60.0,
    )
    for one in (*records, *verdicts, end):
        writer.append(one)
    writer.close()
    return pairs

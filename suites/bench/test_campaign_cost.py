"""Where a campaign's time goes: engine, oracle and power calls apart, and everything else.

One process, cases of one prompt of 17 to 64 tokens on a small generated decoder, warm engines. A
pair counts where it is one case in one configuration against the case's baseline; drawing, judging
(of the lattice's edges too) and writing every record are in `the rest`. Processor time, so that
other work on the machine does not count.

Passes wrongly if pairs that were not judged counted. Ruled out by
`test_where_the_time_of_a_campaign_goes`, which wants every one of them to pass.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.campaign.judging import CheckpointJudge, executed
from harness.campaign.profile import FENCED_COPY_LAGS
from harness.campaign.spec import RunSpec
from harness.campaign.workbench import Workbench
from harness.case import Case, Prompt
from harness.cli.request import manifest_of
from harness.record import Comparison, Outcome, PairRecord, RunWriter
from suites.figures import show

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

NAME, CASES = "tiny-qwen3", 60


def drawn(count: int, seed: int) -> list[Case]:
    draw = random.Random(seed)
    lengths = [draw.randint(17, 64) for _ in range(count)]
    return [
        Case(
            task="embed",
            prompts=(Prompt(tokens=tuple(draw.randrange(10, 250) for _ in range(n))),),
        )
        for n in lengths
    ]


def test_where_the_time_of_a_campaign_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec(profile="smoke", seed=0, checkpoints=(NAME,), axes=("compile", "chunk", "pp"))
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    bench = Workbench(spec, NAME, tmp_path / "run")
    monkeypatch.setattr(bench.executor, "_relator", None)
    writer = RunWriter(tmp_path / "run", manifest_of(spec, "run", [], ()))
    try:
        list(bench.executor.start())
        for case in drawn(3, seed=1):
            list(bench.executor.run(case, FENCED_COPY_LAGS))
        bench.clock.phases.clear()
        began = time.process_time()
        records = []
        for case in drawn(CASES, seed=0):
            for record in bench.executor.run(replace(case, normalize=False), FENCED_COPY_LAGS):
                writer.append(record)
                records.append(record)
        judge = CheckpointJudge(
            dtype="float32", causal=True, chunk=bench.plan.chunk, store=bench.store
        )
        verdicts = list(judge.judge(executed(records)[NAME]))
        for verdict in verdicts:
            writer.append(verdict)
        spent = time.process_time() - began
    finally:
        bench.close()
        writer.close()
    pairs = [
        verdict
        for verdict in verdicts
        if isinstance(verdict, PairRecord) and verdict.comparison is Comparison.BASELINE
    ]
    assert {pair.outcome for pair in pairs} == {Outcome.PASS}
    phases = dict(bench.clock.phases)
    phases["the rest"] = spent - sum(phases.values())
    show(
        f"{len(pairs) / spent:.0f} judged pairs a second of one core ({len(pairs)} pairs)",
        ("phase", "seconds", "share"),
        [(name, f"{s:.2f}", f"{100 * s / spent:.1f} %") for name, s in phases.items()],
    )

"""Records of a few cases of one checkpoint: every cell, every edge, power, witnesses.

Figures are drawn with a fixed seed and stand for nothing that was measured.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness.record import (
    CaseRecord,
    CheckpointInfo,
    Comparison,
    ExecutionRecord,
    Measurement,
    Outcome,
    PairRecord,
    PowerRecord,
    Record,
    RefusalRecord,
    Tier,
)
from suites.unit.reports.parts import BASELINE, BOUNDARIES, CELLS, LENGTHS, REFUSAL, SETTINGS


def _distance(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(axis for axis in BASELINE if a[axis] != b[axis])


def _tier(axes: tuple[str, ...]) -> Tier:
    if "compile" in axes:
        return Tier.KERNEL
    return Tier.REORDERED if "chunk" in axes else Tier.EXACT


def _measurements(draw: random.Random, tier: Tier, scale: float) -> tuple[Measurement, ...]:
    if tier is Tier.EXACT:
        return (
            Measurement(metric="ulp", value=0.0, bound=0.0, unit="ulp", why="same plan, same bits"),
        )
    value = scale * draw.lognormvariate(-1.2, 0.5)
    return (
        Measurement(
            metric="relative_l2",
            value=value,
            bound=1e-5,
            why="3 x q99.9 of 10,240 legitimate pairs",
        ),
        Measurement(
            metric="one_minus_cosine",
            value=value * value / 2,
            bound=1e-9,
            why="cap of the length bucket",
        ),
        Measurement(
            metric="oracle_ratio",
            value=0.6 + draw.random(),
            bound=2.0,
            why="error against float64 over the baseline's own",
        ),
        Measurement(metric="norm", value=1.0),
    )


Fails = Callable[[Mapping[str, str]], bool]


def never(cell: Mapping[str, str]) -> bool:
    return False


def checkpoint_records(
    info: CheckpointInfo, num_cases: int, *, seed: int = 1, fails: Fails = never
) -> list[Record]:
    """Every cell against the baseline and every edge, for `num_cases` cases of one checkpoint."""
    draw = random.Random(seed)
    encoder = info.kind == "encoder"
    cells = [c for c in CELLS if not (encoder and c["chunk"] == "chunked")]
    records: list[Record] = []
    if encoder:
        records.append(
            RefusalRecord(checkpoint=info.name, cell={"chunk": "chunked"}, reason=REFUSAL)
        )
    for index in range(num_cases):
        records += _case_records(info, index, cells, draw, fails)
    return records


def _case_records(
    info: CheckpointInfo,
    index: int,
    cells: list[dict[str, str]],
    draw: random.Random,
    fails: Fails,
) -> Iterable[Record]:
    case_id = f"{info.name[:4]}{index:08x}"
    task = ("embed", "classify", "token_embed")[index % 3]
    length = LENGTHS[index % len(LENGTHS)]
    yield CaseRecord(
        case_id=case_id,
        checkpoint=info.name,
        task=task,
        case={"task": task, "prompts": [{"text": "the quick brown fox"}]},
        lengths=(length,),
        boundaries=BOUNDARIES[index % len(LENGTHS)],
    )
    yield PowerRecord(
        case_id=case_id,
        checkpoint=info.name,
        movements=(
            Measurement(metric="first token changed", value=draw.uniform(0.2, 1.1), bound=1e-3),
        ),
        blind=False,
    )
    for number, cell in enumerate(cells):
        yield _execution(info, case_id, number, cell, length)
    pairs = [(BASELINE, cell, Comparison.BASELINE) for cell in cells[1:]]
    pairs += [
        (a, b, Comparison.EDGE)
        for a, b in itertools.combinations(cells, 2)
        if len(_distance(a, b)) == 1
    ]
    for number, (a, b, comparison) in enumerate(pairs):
        yield _pair(info, case_id, task, number, a, b, comparison, length, draw, fails)
    yield replace(
        _pair(info, case_id, task, 900, BASELINE, BASELINE, Comparison.ORACLE, 64, draw, never),
        a="oracle",
        axes=(),
        measurements=(
            Measurement(metric="relative_l2", value=3e-7, bound=1e-5, why="oracle bound"),
        ),
        tier=Tier.KERNEL,
    )
    yield replace(
        _pair(info, case_id, task, 901, cells[-1], cells[-1], Comparison.SETTING, 64, draw, never),
        settings={**SETTINGS, "stream_policy": "lag(copy@last)", "inputs": "ring"},
    )


def _execution(
    info: CheckpointInfo, case_id: str, number: int, cell: Mapping[str, str], length: int
) -> ExecutionRecord:
    ranks = int(cell["pp"])
    processes = ranks > 1 and number % 4 == 1
    pids = [4100 + r + number for r in range(ranks)] if processes else [4100]
    chunks = -(-length // 64) if cell["chunk"] == "chunked" else 1
    return ExecutionRecord(
        execution_id=f"{case_id}-x{number}",
        case_id=case_id,
        checkpoint=info.name,
        cell=cell,
        settings={**SETTINGS, "executor": "processes" if processes else "inline"},
        plan=[[["r0", 0, length, length]]],
        plan_digest="77aa",
        witness={
            "ranks": [{"rank": r, "num_threads": 1} for r in range(ranks)],
            "derived": {
                "max_chunks": chunks,
                "compiled_calls": chunks * info.num_layers if cell["compile"] == "compiled" else 0,
                "eager_stages": 3
                if cell["compile"] == "compiled"
                else chunks * info.num_layers * 9,
                "lookahead": ranks - (cell["async"] == "sync"),
                "active_ranks": ranks,
                "pids": pids,
                "hazards": [],
            },
        },
        outputs=f"{case_id}-{number}.safetensors",
        output_digest="ab12",
        error="",
        seconds=0.02,
    )


def _pair(
    info: CheckpointInfo,
    case_id: str,
    task: str,
    number: int,
    a: Mapping[str, str],
    b: Mapping[str, str],
    comparison: Comparison,
    length: int,
    draw: random.Random,
    fails: Fails,
) -> PairRecord:
    axes = _distance(a, b)
    tier = _tier(axes)
    failed = length > 128 and fails(a) != fails(b)
    cannot = length == 1 and "chunk" in axes
    measurements = _measurements(draw, tier, 4e-6)
    if failed:
        measurements = _measurements(draw, Tier.KERNEL, 2.0)
    reason = ""
    outcome = Outcome.PASS
    if cannot:
        outcome, measurements = Outcome.INAPPLICABLE, ()
        reason = "The only prompt has 1 token: it cannot be split into chunks of 64."
    elif failed:
        outcome = Outcome.FAIL
        reason = f"relative_l2 {measurements[0].value:.3g} exceeds its bound 1e-05"
    return PairRecord(
        pair_id=f"{case_id}-p{number}",
        case_id=case_id,
        checkpoint=info.name,
        task=task,
        comparison=comparison,
        axes=axes,
        a=f"{case_id}-a",
        b=f"{case_id}-b",
        cell_a=a,
        cell_b=b,
        settings=SETTINGS,
        tier=tier,
        outcome=outcome,
        reason=reason,
        num_compared=0 if cannot else 576,
        measurements=measurements,
    )

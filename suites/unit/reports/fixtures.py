"""Runs as a campaign would record them, built from record dataclasses; nothing is executed.

Figures are drawn with a fixed seed and stand for nothing that was measured.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.record import (
    AxisInfo,
    CaseRecord,
    CheckpointInfo,
    Comparison,
    Divergence,
    EndRecord,
    ExecutionRecord,
    FindingRecord,
    Measurement,
    NoticeRecord,
    Outcome,
    PairRecord,
    PowerRecord,
    Record,
    RefusalRecord,
    RunManifest,
    RunWriter,
    Tier,
    TruthRow,
    exit_code,
)

AXES = (
    AxisInfo(
        name="compile",
        values=("eager", "compiled"),
        baseline="eager",
        tier=Tier.KERNEL,
        meaning="Run the model as written, or through the compiler.",
    ),
    AxisInfo(
        name="chunk",
        values=("whole", "chunked"),
        baseline="whole",
        tier=Tier.REORDERED,
        meaning="Compute a prompt in one step, or split it over several.",
    ),
    AxisInfo(
        name="async",
        values=("sync", "async"),
        baseline="sync",
        tier=Tier.EXACT,
        meaning="Submit a step after the result before it was fetched, or one step earlier.",
    ),
    AxisInfo(
        name="pp",
        values=("1", "2"),
        baseline="1",
        tier=Tier.EXACT,
        meaning="Keep all layers in one rank, or spread them over two pipeline stages.",
    ),
)
BASELINE = {axis.name: axis.baseline for axis in AXES}
CELLS = tuple(
    dict(zip(BASELINE, values, strict=True))
    for values in itertools.product(*(axis.values for axis in AXES))
)
REFUSAL = (
    "chunked_prefill=True is not valid for a BERT encoder: every token attends to every other, so "
    "a prompt cannot be split. Run it whole, or leave chunked_prefill unset."
)
LENGTHS = (1, 300, 129, 64, 65, 190)
"""Tokens of the cases' prompts, in turn; two chunks of 64 or fewer cannot make S1 show."""
SETTINGS = {"stream_policy": "threaded", "inputs": "fenced", "executor": "inline"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A manifest and the records that follow it."""

    manifest: RunManifest
    records: tuple[Record, ...]

    def write(self, folder: Path) -> Path:
        writer = RunWriter(folder, self.manifest)
        for record in self.records:
            writer.append(record)
        writer.close()
        return folder


def checkpoint(name: str, kind: str, origin: str = "generated", layers: int = 4) -> CheckpointInfo:
    return CheckpointInfo(
        name=name,
        kind=kind,
        origin=origin,
        dtype="float32",
        digest="9f2c41d07be35a18",
        num_parameters=134_515_008 if origin == "fetched" else 1_204_224,
        num_layers=layers,
    )


CHECKPOINTS = (
    checkpoint("tiny-qwen3", "decoder"),
    checkpoint("SmolLM2-135M-Instruct", "decoder", "fetched", 30),
    checkpoint("tiny-bert", "encoder"),
    checkpoint("all-MiniLM-L6-v2", "encoder", "fetched", 6),
)


def manifest(
    checkpoints: tuple[CheckpointInfo, ...] = CHECKPOINTS,
    plants: tuple[str, ...] = (),
    notices: tuple[str, ...] = (),
) -> RunManifest:
    return RunManifest(
        run_id="20261129-194510-4f1a",
        created="2026-11-29T19:45:10Z",
        command=("parity", "run", "--profile", "pr", "--seed", "20261129"),
        seed=20261129,
        profile="pr",
        settings={
            "cases": 100,
            "chunk_budget": 64,
            "stream": {"policies": ["threaded", "paced(2)"]},
        },
        environment={
            "python": "3.11.9",
            "torch": "2.13.0+cpu",
            "cpu": "2 cores, AVX2",
            "MKL_CBWR": "AUTO,STRICT",
        },
        axes=AXES,
        checkpoints=checkpoints,
        plants=plants,
        notices=notices,
    )


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


def _never(cell: Mapping[str, str]) -> bool:
    return False


def checkpoint_records(
    info: CheckpointInfo, num_cases: int, *, seed: int = 1, fails: Fails = _never
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
        boundaries=("one token",)
        if length == 1
        else (f"length = {length % 64} mod chunk", "block edge"),
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
        _pair(info, case_id, task, 900, BASELINE, BASELINE, Comparison.ORACLE, 64, draw, _never),
        a="oracle",
        axes=(),
        measurements=(
            Measurement(metric="relative_l2", value=3e-7, bound=1e-5, why="oracle bound"),
        ),
        tier=Tier.KERNEL,
    )
    yield replace(
        _pair(info, case_id, task, 901, cells[-1], cells[-1], Comparison.SETTING, 64, draw, _never),
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


def end(records: Iterable[Record]) -> EndRecord:
    counts = Counter(str(r.outcome) for r in records if isinstance(r, PairRecord))
    return EndRecord(
        finished="2026-11-29T19:50:02Z",
        exit_code=exit_code(counts),
        counts=counts,
        seconds=292.4,
        phases={
            "engine": 171.0,
            "oracle": 48.2,
            "start-up": 39.0,
            "judge": 17.5,
            "power": 12.1,
            "records": 4.6,
        },
    )


def clean_run(num_cases: int = 4) -> RecordedRun:
    """Two decoders and two encoders; the encoders' chunk cells are refused."""
    records: list[Record] = []
    for seed, info in enumerate(CHECKPOINTS):
        records += checkpoint_records(info, num_cases, seed=seed)
    records.append(NoticeRecord(text="Inline ranks share one process; 8 cells ran as processes."))
    return RecordedRun(manifest=manifest(), records=(*records, end(records)))


def needs_chunk_and_compile(cell: Mapping[str, str]) -> bool:
    return cell["chunk"] == "chunked" and cell["compile"] == "compiled"


def failing_run(num_cases: int = 4) -> RecordedRun:
    """S1-like: a stale input buffer shows where prompts are chunked AND the model is compiled."""
    records: list[Record] = []
    for seed, info in enumerate(CHECKPOINTS[:3]):
        fails = needs_chunk_and_compile if info.kind == "decoder" else _never
        records += checkpoint_records(info, num_cases, seed=seed, fails=fails)
    failed = [r for r in records if isinstance(r, PairRecord) and r.outcome is Outcome.FAIL]
    for info in CHECKPOINTS[:2]:
        own = tuple(p.pair_id for p in failed if p.checkpoint == info.name)
        records.append(finding(info, own))
    return RecordedRun(
        manifest=manifest(CHECKPOINTS[:3], plants=("stale-input-buffer",)),
        records=(*records, end(records)),
    )


def finding(info: CheckpointInfo, pairs: tuple[str, ...]) -> FindingRecord:
    draw = random.Random(len(info.name))
    length, chunk = 190, 64
    errors = tuple(
        0.0 if t < 2 * chunk else 0.4 * draw.lognormvariate(0, 0.7) for t in range(length)
    )
    return FindingRecord(
        finding_id=f"F-{info.name[:4]}-3c9d",
        signature=f"{info.name}/classify/chunk+compile/layer1",
        title=f"{info.name}: scores change when a compiled model gets its prompt in chunks",
        checkpoint=info.name,
        task="classify",
        outcome=Outcome.FAIL,
        case={
            "task": "classify",
            "prompts": [
                {"query": "what is a fence", "document": "A fence orders two accesses. " * 20}
            ],
            "activation": False,
        },
        pairs=pairs,
        minimal_sets=(("chunk=chunked", "compile=compiled"),),
        masked_by=("inputs=ring", "stream_policy=immediate"),
        conditions=("stream_policy=paced(2)", "3 chunks or more", "prompts of 129 tokens or more"),
        truth_table=tuple(
            TruthRow(
                cell=cell,
                outcome=Outcome.FAIL if needs_chunk_and_compile(cell) else Outcome.PASS,
                value=1.13 if needs_chunk_and_compile(cell) else 2.1e-7,
                note="baseline" if cell == BASELINE else "",
            )
            for cell in CELLS
        ),
        metric="relative_l2",
        worst=1.13 if info.name.startswith("tiny") else 0.71,
        bound=1e-5,
        first_divergence=Divergence(
            prompt=0, step=2, chunk=2, layer=1, token=128, relative_l2=0.83
        ),
        token_errors=(errors,),
        chunk_edges=((64, 128),),
        reproduce=f"parity replay F-{info.name[:4]}-3c9d --run 20261129-194510-4f1a",
        script="from harness import replay\n\nreplay.main()\n",
    )


def interrupted_run() -> RecordedRun:
    """Killed after some pairs: no end record."""
    run = clean_run(num_cases=2)
    return replace(run, records=run.records[: len(run.records) // 2])


def empty_run() -> RecordedRun:
    """Started and ended without a single case."""
    return RecordedRun(manifest=manifest(checkpoints=()), records=(end(()),))


HOSTILE = (
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "\"'><svg onload=window.hit=1>",
    "{{ 7*7 }}{% raw %}",
    "javascript:window.hit=1",
    "[red]bold[/red] \x1b]8;;http://x\x07\x1b[31m \u202egnp.exe \x00 <!--",
)


def hostile_run() -> RecordedRun:
    """A payload in every text that a model, a prompt, an error message or a file name can carry."""
    nasty = " ".join(HOSTILE)
    info = replace(checkpoint(nasty, "decoder"), dtype=nasty, digest=nasty)
    records = checkpoint_records(info, 3, fails=needs_chunk_and_compile)
    failed = next(r for r in records if isinstance(r, PairRecord) and r.outcome is Outcome.FAIL)
    broken = replace(
        failed,
        pair_id=nasty + "1",
        outcome=Outcome.ERROR,
        reason=nasty,
        task=nasty,
        measurements=(Measurement(metric=nasty, value=1.0, bound=2.0, unit=nasty, why=nasty),),
        cell_b={**failed.cell_b, "pp": nasty},
        warnings=(nasty,),
        settings={nasty: nasty},
    )
    records += [
        broken,
        replace(broken, pair_id=nasty + "2", outcome=Outcome.VACUOUS),
        RefusalRecord(checkpoint=nasty, cell={"pp": "2"}, reason=nasty),
        NoticeRecord(text=nasty),
        replace(
            finding(info, (failed.pair_id,)),
            finding_id=nasty,
            title=nasty,
            signature=nasty,
            task=nasty,
            masked_by=(nasty,),
            conditions=(nasty,),
            minimal_sets=((nasty,),),
            metric=nasty,
            reproduce=nasty,
            script=nasty,
            case={"task": nasty, "prompts": [{"text": nasty}, {"query": nasty, "document": nasty}]},
        ),
    ]
    start = manifest((info,), plants=(nasty,), notices=(nasty,))
    start = replace(
        start,
        run_id=nasty,
        command=("parity", nasty),
        profile=nasty,
        settings={nasty: {nasty: nasty}},
        environment={nasty: nasty},
    )
    return RecordedRun(manifest=start, records=(*records, end(records)))


def large_run(num_pairs: int = 10_000) -> RecordedRun:
    """At least `num_pairs` pairs, every sixth reason and measurement different."""
    records: list[Record] = []
    per_case = 49
    each = -(-num_pairs // (2 * per_case))
    for seed, info in enumerate(CHECKPOINTS[:2]):
        records += checkpoint_records(info, each, seed=seed, fails=needs_chunk_and_compile)
    return RecordedRun(manifest=manifest(CHECKPOINTS[:2]), records=(*records, end(records)))


def plus(run: RecordedRun, *, manifest_notice: str, notice: str) -> RecordedRun:
    """`run` with one notice known at its start and one recorded on the way."""
    return RecordedRun(
        manifest=replace(run.manifest, notices=(manifest_notice,)),
        records=(NoticeRecord(text=notice), *run.records),
    )

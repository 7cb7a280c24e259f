"""Runs as a campaign would record them, built from record dataclasses; nothing is executed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.record import (
    CaseRecord,
    CheckpointInfo,
    Comparison,
    Divergence,
    FindingRecord,
    Measurement,
    NoticeRecord,
    Outcome,
    PairRecord,
    Record,
    RefusalRecord,
    ReplayRecord,
    Source,
    Tier,
    TruthRow,
)
from reports.load import Run
from suites.unit.reports.cases import checkpoint_records, never
from suites.unit.reports.parts import (
    BASELINE,
    BOUNDARIES,
    CELLS,
    CHECKPOINTS,
    LENGTHS,
    RecordedRun,
    checkpoint,
    end,
    manifest,
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


def failing_run(
    num_cases: int = 4, checkpoints: tuple[CheckpointInfo, ...] = CHECKPOINTS[:3]
) -> RecordedRun:
    """S1-like: a stale input buffer shows where prompts are chunked AND the model is compiled."""
    records: list[Record] = []
    for seed, info in enumerate(checkpoints):
        fails = needs_chunk_and_compile if info.kind == "decoder" else never
        records += checkpoint_records(info, num_cases, seed=seed, fails=fails)
    failed = [r for r in records if isinstance(r, PairRecord) and r.outcome is Outcome.FAIL]
    for info in (c for c in checkpoints if c.kind == "decoder"):
        own = tuple(p.pair_id for p in failed if p.checkpoint == info.name)
        records.append(finding(info, own))
    return RecordedRun(
        manifest=manifest(checkpoints, plants=("stale-input-buffer",)),
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
        token_cosines=(tuple(e * e / 2 for e in errors),),
        layer_errors=(
            tuple(
                tuple(e if layer else 0.0 for e in errors) for layer in range(info.num_layers + 1)
            ),
        ),
        token_texts=(tuple(f"word{t} " for t in range(len(errors))),),
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
        ReplayRecord(
            source=Source.LEDGER,
            name=nasty,
            checkpoint=nasty,
            title=nasty,
            failed_then=True,
            fails_now=True,
            note=nasty,
            reproduce=nasty,
            entry_id=nasty,
            owner=nasty,
            link=nasty,
            expires="2026-11-30",
        ),
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


def many_cases(count: int) -> Run:
    """`count` cases of two checkpoints, each with one comparison; every tenth fails. In memory."""
    cases: dict[tuple[str, str], CaseRecord] = {}
    pairs: list[PairRecord] = []
    for index in range(count):
        info = CHECKPOINTS[0] if index % 2 else CHECKPOINTS[2]
        case_id, length = f"{index:012x}", LENGTHS[index % len(LENGTHS)]
        failed = index % 10 == 3
        text = f"prompt {index} is about the fence that orders two accesses to one buffer"
        cases[info.name, case_id] = CaseRecord(
            case_id=case_id,
            checkpoint=info.name,
            task="embed",
            case={"task": "embed", "prompts": [{"text": text}]},
            lengths=(length,),
            boundaries=BOUNDARIES[index % len(LENGTHS)],
        )
        value = 1.0 if failed else 1e-6 * (1 + index % 7)
        pairs.append(
            PairRecord(
                pair_id=f"p{index}",
                case_id=case_id,
                checkpoint=info.name,
                task="embed",
                comparison=Comparison.BASELINE,
                axes=("chunk",),
                a="a",
                b="b",
                cell_a=BASELINE,
                cell_b={**BASELINE, "chunk": "chunked"},
                settings={},
                tier=Tier.REORDERED,
                outcome=Outcome.FAIL if failed else Outcome.PASS,
                reason=f"relative_l2 {value} exceeds its bound" if failed else "",
                num_compared=576,
                measurements=(Measurement(metric="relative_l2", value=value, bound=1e-5),),
            )
        )
    records = (*cases.values(), *pairs)
    return Run(
        manifest=manifest((CHECKPOINTS[0], CHECKPOINTS[2])),
        cases=cases,
        executions={},
        pairs=tuple(pairs),
        end=end(records),
    )


def every_kind(*, clean: int, failing: int) -> dict[str, Callable[[], RecordedRun]]:
    """Name -> a run of that kind; `clean` and `failing`: how many cases theirs have."""
    return {
        "clean": lambda: clean_run(num_cases=clean),
        "failing": lambda: failing_run(num_cases=failing),
        "interrupted": interrupted_run,
        "empty": empty_run,
        "hostile": hostile_run,
    }

"""What recorded runs have in common: axes, cells, checkpoints, a manifest and an end."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.record import (
    AxisInfo,
    CheckpointInfo,
    EndRecord,
    PairRecord,
    Record,
    RunManifest,
    RunWriter,
    Tier,
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
BOUNDARIES = (
    ("one token",),
    ("over 256 tokens", "block edge"),
    ("length = 1 mod chunk", "block edge"),
    ("length = 0 mod chunk",),
    ("length = 1 mod chunk",),
    ("three chunks",),
)
"""Classes that the lengths hit, one entry each."""
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

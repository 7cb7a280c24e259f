"""Repeats prompts in an engine's cells, to tell a race from its own noise.

    judge.sh SITE WORK floor

A race comes out right now and then, so one clean answer shows little, and bfloat16 differs from
itself where the order of a sum changes. So every prompt is run several times in each cell, and each
answer's cosine to the first answer of two cells is printed: to the eager run of the whole prompt,
and to the whole prompt's run in the cell's own mode. The least cosines in eager are the floor.

Ends 1 where a compiled, chunked answer is farther from the compiled, whole one than any eager
answer is from another by MARGIN, 3 where the condition was not met (no compiled artefact was
called, or a prompt was not cut), else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.campaign.workbench import read_cases
from harness.case import Case
from harness.checkpoints.catalogue import checkpoint
from harness.systems.base import Assignment
from harness.systems.vllm.system import Vllm

CELLS = (
    ("eager", "whole"),
    ("eager", "chunked"),
    ("compiled", "whole"),
    ("compiled", "chunked"),
)
MARGIN = 0.002
"""Of a cosine. What compilation rounds otherwise was 0.001 here; the race left 0.08 and more."""


def unit(data: Any) -> Any:
    """A bfloat16 row as its bits, or a float row, as a float64 unit vector."""
    if data.dtype == np.uint16:
        data = (data.astype(np.uint32) << 16).view(np.float32)
    row = data.astype(np.float64).ravel()
    return row / np.linalg.norm(row)


def cell_of(mode: str, chunk: str) -> dict[str, str]:
    return {"compile": mode, "chunk": chunk, "async": "sync", "pp": "1"}


def measure(
    system: Vllm, cases: Sequence[Case], mode: str, chunk: str, repeats: int
) -> tuple[list[list[Any]], dict[str, int]]:
    """Rows by case and repeat, and the least that a run's witness counted."""
    session = system.open(cell_of(mode, chunk), {})
    rows: list[list[Any]] = []
    calls, chunks = [], []
    for case in cases:
        rows.append([])
        for _ in range(repeats):
            run = session.run(case, system.encode(case))
            rows[-1].append(unit(run.outputs[0].data))
            calls.append(min(int(rank["compiled_calls"]) for rank in run.witness["ranks"]))
            chunks.append(max(int(pieces) for pieces in run.witness["chunks"].values()))
    return rows, {"compiled calls": min(calls), "chunks": min(chunks)}


def main(options: argparse.Namespace) -> int:
    """Print the table; the exit code."""
    system = Vllm(
        Assignment(
            checkpoint=checkpoint(str(options.model)),
            folder=options.model,
            chunk=options.chunk,
            max_num_seqs=2,
            max_model_len=options.max_model_len,
            dtype="bfloat16",
            options={"gpu_memory_utilization": 0.35},
        ),
        Path(os.environ["PARITY_VLLM_PYTHON"]),
    )
    cases = read_cases(options.model / "cases.jsonl")
    found, counts = {}, {}
    try:
        for mode, chunk in CELLS:
            found[mode, chunk], counts[mode, chunk] = measure(
                system, cases, mode, chunk, options.repeats
            )
        facts = dict(system.about())
    finally:
        system.close()
    print(json.dumps(facts))  # noqa: T201 - a script's output
    least: dict[tuple[str, str], float] = {}
    for cell in CELLS:
        print(f"{cell[0]}, {cell[1]}: {counts[cell]}")  # noqa: T201
        for index, rows in enumerate(found[cell]):
            for name, (mode, chunk) in {
                "eager, whole": ("eager", "whole"),
                f"{cell[0]}, whole": (cell[0], "whole"),
            }.items():
                base = found[mode, chunk][index][0]
                cosines = [float(row @ base) for row in rows]
                if mode == cell[0]:
                    least[cell] = min(least.get(cell, 1.0), *cosines)
                told = " ".join(f"{cosine:.5f}" for cosine in cosines)
                print(f"  prompt {index + 1} to {name}: {told}")  # noqa: T201
    for (mode, chunk), cosine in least.items():
        print(f"least cosine of {mode}, {chunk} to {mode}, whole: {cosine:.6f}")  # noqa: T201
    witness = counts["compiled", "chunked"]
    if witness["compiled calls"] == 0 or witness["chunks"] < 2:
        print(f"the condition was not met: {witness}")  # noqa: T201
        return 3
    floor = min(least["eager", "whole"], least["eager", "chunked"])
    return int(least["compiled", "chunked"] < floor - MARGIN)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--chunk", type=int, default=2048)
    parser.add_argument("--max-model-len", type=int, default=8192)
    sys.exit(main(parser.parse_args()))

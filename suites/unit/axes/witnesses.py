"""Witnesses as an honest engine would leave them, and as a system that ignores a switch would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Witness = dict[str, Any]

PLAN_WHOLE = [
    [["r0", 0, 40, 40], ["r1", 0, 8, 8]],
    [["r2", 0, 8, 8], ["r3", 0, 8, 8]],
    [["r4", 0, 8, 8]],
]
"""Five prompts, two a step; every step finishes prompts."""
PLAN_CHUNKED = [
    [["r0", 0, 16, 40]],
    [["r0", 16, 16, 40]],
    [["r0", 32, 8, 40], ["r1", 0, 8, 8]],
    [["r2", 0, 8, 8], ["r3", 0, 8, 8]],
    [["r4", 0, 8, 8]],
]
LENGTHS = (40, 8, 8, 8, 8)


def plan_of(cell: Mapping[str, str]) -> list[list[list[Any]]]:
    """The plan an engine would follow in a cell."""
    return PLAN_CHUNKED if cell["chunk"] == "chunked" else PLAN_WHOLE


def honest(cell: Mapping[str, str], **changes: Any) -> Witness:
    """What a run in `cell` leaves behind; `changes` replaces top-level entries."""
    plan = plan_of(cell)
    stages, overlap = int(cell["pp"]), int(cell["async"] == "async")
    tensor_ranks = int(cell.get("tp", "1"))
    sums = 8 * len(plan) // stages if tensor_ranks > 1 else 0
    compiled, graph = cell["compile"] == "compiled", cell.get("graph", "off")
    tokens = [sum(entry[2] for entry in step) for step in plan]
    rows = [next(b for b in (8, 16, 32, 64) if b >= n) if graph == "coarse" else n for n in tokens]
    rank = {
        "pid": 100,
        "steps": len(plan),
        "operations": 9 * len(plan),
        "compiled_calls": 2 * len(plan) if compiled else 0,
        "eager_stages": len(plan) if compiled else 9 * len(plan),
        "lookahead": stages - 1 + overlap,
        "graphs": int(compiled),
        "replays": 0 if graph == "off" else len(plan),
        "buckets": () if graph == "off" else tuple(sorted(set(rows))),
        "padding_rows": sum(rows) - sum(tokens),
        "attention_calls": {cell.get("attention", "sdpa"): 4 * len(plan)},
        "reductions": sums,
        "summands": sums * tensor_ranks,
        "num_threads": 1,
        "hazards": [],
    }
    chunks: dict[str, int] = {}
    for step in plan:
        for entry in step:
            chunks[entry[0]] = chunks.get(entry[0], 0) + 1
    return {
        "plan_digest": f"plan-{cell['chunk']}",
        "chunks": chunks,
        "padded_tokens": rows,
        "stream_policy": "threaded",
        "instruction_set": "AVX2",
        "flags": {"MKL_CBWR": "AUTO,STRICT", "batch_invariant": "off"},
        "ranks": [{"rank": index, **rank} for index in range(stages * tensor_ranks)],
        **changes,
    }


def liar(cell: Mapping[str, str], axis: str) -> Witness:
    """The witness of a system that ran `axis` the other way than the cell says."""
    other = {
        "compile": {"eager": "compiled", "compiled": "eager"},
        "chunk": {"whole": "chunked", "chunked": "whole"},
        "async": {"sync": "async", "async": "sync"},
        "pp": {"1": "2", "2": "1"},
    }[axis][cell[axis]]
    if axis != "pp":
        return honest({**cell, axis: other})
    # As many ranks as the cell has stages and one more, of which as many work as the other value.
    told = honest(cell)
    rank = told["ranks"][0]
    told["ranks"] = [
        {**rank, "rank": index, "operations": rank["operations"] * (index < int(other))}
        for index in range(int(cell["pp"]) + 1)
    ]
    return told

"""From a checkpoint and its plan to the cases a run is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.campaign.profile import CheckpointPlan
from harness.case import Case, Prompt
from harness.checkpoints.catalogue import Checkpoint
from harness.checkpoints.sizes import sizes_of
from harness.strategies.cases import CaseSpace, cases
from harness.strategies.draw import draw_cases, draw_each, draw_switching
from harness.strategies.lengths import NEAR_MAXIMUM
from harness.systems.base import Encoded

APART = 1 << 40
"""Between the seeds of the lattice's cases and of a covering array's."""
Encode = Callable[[Case], Sequence[Encoded]]


def space_of(
    checkpoint: Checkpoint, folder: Path, plan: CheckpointPlan, encode: Encode
) -> CaseSpace:
    """What cases may be drawn for this checkpoint; `encode` is the system's own tokenizer."""

    def count(text: str) -> int:
        return len(encode(Case(task="embed", prompts=(Prompt(text=text),)))[0].token_ids)

    tasks = tuple(t for t in plan.tasks if t != "score" or checkpoint.reranker is not None)
    overhead = 0
    if "score" in tasks:
        pair = Case(task="score", prompts=(Prompt(query="a", document="b"),))
        overhead = len(encode(pair)[0].token_ids) - count("a") - count("b")
    sizes = sizes_of(folder)
    return CaseSpace(
        tasks=tasks,
        vocab_size=sizes.vocab_size,
        edges=plan.edges,
        max_num_seqs=plan.max_num_seqs,
        reserved=special_tokens(folder),
        count=count,
        pair_overhead=max(0, overhead),
        max_case_tokens=plan.max_case_tokens,
        chunkable=checkpoint.kind == "decoder",
        dimensions=(sizes.hidden_size // 2,),
    )


def draw(space: CaseSpace, plan: CheckpointPlan, seed: int) -> list[Case]:
    """The plan's cases: the long ones first, so that the slowest work starts first."""
    # A case of its own for the longest prompt: beside others it would not fit the token budget.
    wide = replace(space, max_case_tokens=plan.max_model_len + plan.chunk)
    near = [cases(wide, focus=NEAR_MAXIMUM, task="embed")]
    long = draw_each(near, plan.long_cases, seed) if plan.long_cases else []
    return [*long, *draw_cases(space, plan.cases - len(long), seed)]


def draw_for_array(space: CaseSpace, plan: CheckpointPlan, seed: int) -> list[Case]:
    """Cases for a covering array, where a switch that cannot act takes its whole cell down."""
    if space.chunkable:
        return draw_switching(space, plan.cases, seed)
    # Of another seed than the lattice's cases: a case has one set of runs.
    return draw_cases(space, plan.cases, seed + APART)


def aimed_at(space: CaseSpace, plan: CheckpointPlan) -> tuple[str, ...]:
    """The boundary classes that `draw` is to hit."""
    names = space.classes
    return (*names, NEAR_MAXIMUM) if plan.long_cases and NEAR_MAXIMUM not in names else names


def special_tokens(folder: Path) -> frozenset[int]:
    """Token ids that a drawn prompt may not hold."""
    path = folder / "tokenizer.json"
    if not path.exists():
        return frozenset()
    added = json.loads(path.read_text(encoding="utf-8")).get("added_tokens", [])
    return frozenset(int(token["id"]) for token in added if token.get("special"))

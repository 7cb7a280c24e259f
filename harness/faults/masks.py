"""Rows that see too many keys or too few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults.base import BASELINE, FaultClass, Undo, exposed, planted
from harness.faults.seams import is_compiled, nothing, on_meta

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.execution.base import Frame
    from engine.plan import StepPlan
    from engine.runner import Runner

WINDOW = 16


@planted(
    name="chunk-sees-only-itself",
    kind=FaultClass.MASK,
    mechanism="a later chunk attends as if nothing came before it",
    sources=("imp#548", "sglang#22291"),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="cosine 0.3 to 0.9",
)
def chunk_sees_only_itself(runner: Runner) -> Undo:
    def forget(frame: Frame, plan: StepPlan) -> dict[str, torch.Tensor]:
        del plan
        return {"context_starts": frame.meta.context_starts * 0}

    return on_meta(runner, forget)


@planted(
    name="context-one-short",
    kind=FaultClass.MASK,
    mechanism="a later chunk is given one key of its context too few",
    sources=("sglang#22291",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of two chunks or more",
    masked_by=("whole prompts", "short prompts"),
    magnitude="each row misses its own key",
)
def context_one_short(runner: Runner) -> Undo:
    def shorten(frame: Frame, plan: StepPlan) -> dict[str, torch.Tensor]:
        del plan
        return {"context_starts": (frame.meta.context_starts - 1).clamp(min=0)}

    return on_meta(runner, shorten)


@planted(
    name="sees-next-token",
    kind=FaultClass.MASK,
    mechanism="the causal mask is off by one: every row sees the token after it",
    sources=("TEI#882", "candle#3567"),
    exposed_by=(BASELINE, *exposed("chunk=chunked", "compile=compiled", "async=async", "pp=2")),
    conditions=(
        "any prompt of a causal model; behind its end lies what was computed before, of which "
        "every cell has its own, so cells differ too"
    ),
    magnitude="cosine 0.1 to 0.9",
)
def sees_next_token(runner: Runner) -> Undo:
    return on_meta(runner, _one_more)


@planted(
    name="compiled-sees-next-token",
    kind=FaultClass.MASK,
    mechanism="only the compiled block builds the causal mask off by one",
    sources=("TEI#882",),
    exposed_by=exposed("compile=compiled"),
    conditions="any prompt of a causal model",
    masked_by=("eager execution",),
    magnitude="cosine 0.1 to 0.9",
)
def compiled_sees_next_token(runner: Runner) -> Undo:
    return on_meta(runner, _one_more) if is_compiled(runner) else nothing


def _one_more(frame: Frame, plan: StepPlan) -> dict[str, torch.Tensor]:
    starts = frame.meta.context_starts.clone()
    starts[: len(plan.entries)] += 1
    return {"context_starts": starts}


@planted(
    name="first-block-read-twice",
    kind=FaultClass.MASK,
    mechanism="a context of several blocks is read with its last full block in place of the first",
    sources=("vllm-ascend#12130",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a prompt of three chunks or more of one block each",
    masked_by=("whole prompts", "short prompts"),
    magnitude="sixteen keys of the context replaced by sixteen others",
)
def first_block_read_twice(runner: Runner) -> Undo:
    size = runner.config.cache.block_size

    def again(frame: Frame, plan: StepPlan) -> dict[str, torch.Tensor]:
        tables = frame.meta.block_tables.clone()
        for sequence, entry in enumerate(plan.entries):
            full = entry.start // size
            if full > 1:
                tables[sequence, 0] = tables[sequence, full - 1]
        return {"block_tables": tables}

    return on_meta(runner, again)


@planted(
    name="row-of-neighbour",
    kind=FaultClass.MASK,
    mechanism="sequences are cut one row early, so the last token of one opens the next",
    sources=("sglang#35588",),
    exposed_by=(BASELINE, *exposed("chunk=chunked")),
    conditions="two prompts in one step",
    masked_by=("one prompt at a time",),
    magnitude="a row without attention, and a neighbour that sees it",
)
def row_of_neighbour(runner: Runner) -> Undo:
    def early(frame: Frame, plan: StepPlan) -> dict[str, torch.Tensor]:
        offsets = frame.meta.row_offsets.clone()
        if len(plan.entries) > 1 and int(offsets[1]) > 1:
            offsets[1] -= 1
        return {"row_offsets": offsets}

    return on_meta(runner, early)


@planted(
    name="encoder-cut-into-windows",
    kind=FaultClass.MASK,
    mechanism="an encoder's prompt is split over micro-batches, which do not see each other",
    sources=("llama.cpp#13076", "ollama#14121"),
    conditions="a prompt of more than sixteen tokens, alone in its step",
    masked_by=("short prompts",),
    magnitude="cosine 0.6 to 0.95",
    checkpoint="tiny-bert",
)
def encoder_cut_into_windows(runner: Runner) -> Undo:
    def cut(frame: Frame, plan: StepPlan) -> dict[str, torch.Tensor]:
        offsets = frame.meta.row_offsets.clone()
        if len(plan.entries) == 1 and plan.num_tokens > WINDOW and len(offsets) > 2:
            offsets[1] = WINDOW
            offsets[2] = plan.num_tokens
        return {"row_offsets": offsets}

    return on_meta(runner, cut)

"""Index, length and row-mapping errors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.faults.base import BASELINE, FaultClass, Undo, exposed, planted
from harness.faults.seams import on_answers, on_hidden

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.pooling.base import PoolingBatch
    from engine.pooling.dispatcher import Pooled
    from engine.runner import Runner


@planted(
    name="last-row-one-early",
    kind=FaultClass.ROWS,
    mechanism="the last token is looked for one row too early",
    sources=("transformers#35911", "ml-commons#4744"),
    conditions="LAST pooling of a step with two tokens or more of the prompt",
    masked_by=("token-level tasks",),
    magnitude="the hidden state of the token before",
)
def last_row_one_early(runner: Runner) -> Undo:
    def shift(hidden: torch.Tensor, batch: PoolingBatch) -> torch.Tensor:
        for entry in batch.entries:
            if entry.finishes and entry.count > 1 and not entry.request.task.is_token_level:
                end = entry.row + entry.count
                hidden[end - 1] = hidden[end - 2].clone()
        return hidden

    return on_hidden(runner, shift)


@planted(
    name="last-row-of-batch",
    kind=FaultClass.ROWS,
    mechanism="every prompt of a step is given the last row of the whole batch",
    sources=("transformers#46782",),
    exposed_by=(BASELINE, *exposed("chunk=chunked")),
    conditions="two prompts in one step, LAST pooling",
    masked_by=("one prompt at a time",),
    magnitude="two prompts with one answer",
)
def last_row_of_batch(runner: Runner) -> Undo:
    def spread(hidden: torch.Tensor, batch: PoolingBatch) -> torch.Tensor:
        last = hidden[batch.num_rows - 1].clone()
        for entry in batch.entries:
            if entry.finishes and not entry.request.task.is_token_level:
                hidden[entry.row + entry.count - 1] = last
        return hidden

    return on_hidden(runner, spread)


@planted(
    name="answers-swapped",
    kind=FaultClass.ROWS,
    mechanism="two requests that finish in one step are given each other's answers",
    sources=("ollama#6187", "DMI#67", "graphiti#1732", "xinference#5496"),
    exposed_by=(BASELINE, *exposed("chunk=chunked")),
    conditions="two prompts that finish in one step",
    masked_by=("one prompt at a time",),
    magnitude="right numbers, wrong order",
)
def answers_swapped(runner: Runner) -> Undo:
    def swap(answers: list[Pooled], batch: PoolingBatch) -> list[Pooled]:
        del batch
        rows = [answer.rows for answer in answers]
        if len(rows) > 1 and rows[0].shape == rows[1].shape:
            rows[0], rows[1] = rows[1], rows[0]
        return [replace(a, rows=r) for a, r in zip(answers, rows, strict=True)]

    return on_answers(runner, swap)


@planted(
    name="token-rows-shifted",
    kind=FaultClass.ROWS,
    mechanism="token-level rows are split one row off: each begins with the row before",
    sources=("vllm#36614",),
    exposed_by=(BASELINE, *exposed("chunk=chunked")),
    conditions="a token-level request that is not first in its step",
    masked_by=("one prompt at a time", "sequence-level tasks"),
    magnitude="one row of the neighbour, the others one token off",
)
def token_rows_shifted(runner: Runner) -> Undo:
    def shift(hidden: torch.Tensor, batch: PoolingBatch) -> torch.Tensor:
        for entry in batch.entries:
            if entry.row and entry.request.task.is_token_level:
                rows = slice(entry.row, entry.row + entry.count)
                hidden[rows] = hidden[entry.row - 1 : entry.row + entry.count - 1].clone()
        return hidden

    return on_hidden(runner, shift)


@planted(
    name="one-row-step-repeats",
    kind=FaultClass.ROWS,
    mechanism="a step of a single token takes its padding row for the token's",
    sources=("AutoRAG#366", "sglang#27343"),
    exposed_by=(BASELINE, *exposed("chunk=chunked")),
    conditions="a step of one token: a prompt of one token alone, or a last chunk of one",
    masked_by=("whole prompts and no prompt of one token",),
    magnitude="the padding's hidden state",
)
def one_row_step_repeats(runner: Runner) -> Undo:
    def padding(hidden: torch.Tensor, batch: PoolingBatch) -> torch.Tensor:
        if batch.num_rows == 1:
            hidden[0] = runner.hidden.tensor[1]
        return hidden

    return on_hidden(runner, padding)

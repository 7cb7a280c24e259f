"""Rows that leave a step as a view of what the next step writes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.faults.base import FaultClass, Undo, exposed, planted, replace_method
from harness.faults.seams import nothing

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.pooling.base import PoolingBatch
    from engine.pooling.dispatcher import Pooled
    from engine.runner import Runner


@planted(
    name="unowned-token-rows",
    kind=FaultClass.OWNERSHIP,
    mechanism=(
        "ALL pooling hands out the rows of a single-chunk prompt without copying them; the next "
        "step writes the hidden-state buffer before the copy to the host has read it"
    ),
    sources=("vllm#50931", "vllm#53828"),
    exposed_by=exposed("async=async", "pp=2"),
    conditions="a token-level request with an identity head whose prompt fits one chunk",
    masked_by=("normalisation", "sequence-level tasks", "sync scheduling on one stage"),
    magnitude="whole rows replaced by another request's",
)
def unowned_token_rows(runner: Runner) -> Undo:
    if runner.pooler is None:
        return nothing
    pooling = runner.pooler.all
    own: Any = pooling.own

    def borrow_single_chunk(
        rows: torch.Tensor, *, finishes: bool, retained: int, overlaps_steps: bool
    ) -> torch.Tensor:
        if finishes and retained == 0:
            return rows
        owned: torch.Tensor = own(
            rows, finishes=finishes, retained=retained, overlaps_steps=overlaps_steps
        )
        return owned

    return replace_method(pooling, "own", borrow_single_chunk)


@planted(
    name="borrowed-chunk-rows",
    kind=FaultClass.OWNERSHIP,
    mechanism="rows of an unfinished prompt are retained as a view of the hidden-state buffer",
    sources=("pytorch#177192",),
    exposed_by=exposed("chunk=chunked"),
    conditions="a token-level request of two chunks or more",
    masked_by=("whole prompts", "short prompts", "sequence-level tasks"),
    magnitude="rows of early chunks replaced by those of the last",
)
def borrowed_chunk_rows(runner: Runner) -> Undo:
    if runner.pooler is None:
        return nothing
    pooling = runner.pooler.all
    own: Any = pooling.own

    def borrow_unfinished(
        rows: torch.Tensor, *, finishes: bool, retained: int, overlaps_steps: bool
    ) -> torch.Tensor:
        if not finishes:
            return rows
        owned: torch.Tensor = own(
            rows, finishes=finishes, retained=retained, overlaps_steps=overlaps_steps
        )
        return owned

    return replace_method(pooling, "own", borrow_unfinished)


@planted(
    name="unowned-last-row",
    kind=FaultClass.OWNERSHIP,
    mechanism="LAST hands out a view of its row where no head copies it",
    sources=("vllm#53828", "vllm#29623"),
    exposed_by=exposed(
        "async=async", "pp=2", "async=async & chunk=chunked", "chunk=chunked & pp=2"
    ),
    conditions=(
        "an embedding that is not normalised, steps in flight, a copy stream that lags; where "
        "whole prompts fit one step, only chunks make another"
    ),
    masked_by=("normalisation", "sync scheduling on one stage"),
    magnitude="the row of another request",
)
def unowned_last_row(runner: Runner) -> Undo:
    pooler = runner.pooler
    if pooler is None:
        return nothing
    pool = pooler.pool

    def borrow(hidden: torch.Tensor, batch: PoolingBatch) -> list[Pooled]:
        entries = {entry.request_id: entry for entry in batch.entries}
        answers = []
        for answer in pool(hidden, batch):
            entry = entries[answer.request_id]
            plain = entry.request.task.value == "embed" and not entry.request.params.normalize
            if plain and entry.request.params.normalize is False:
                answer = replace(answer, rows=hidden[entry.row + entry.count - 1])
            answers.append(answer)
        return answers

    return replace_method(pooler, "pool", borrow)

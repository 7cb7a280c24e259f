"""The right hidden states, pooled wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.faults.base import BASELINE, FaultClass, Undo, exposed, planted, replace_method
from harness.faults.seams import nothing, on_hidden

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.pooling.base import PoolingBatch
    from engine.runner import Runner


@planted(
    name="first-token-for-last",
    kind=FaultClass.POOLING,
    mechanism="the pooling file is ignored: CLS is taken where the model wants LAST",
    sources=("omlx#2594", "zoteus#51"),
    exposed_by=(BASELINE, *exposed("chunk=chunked")),
    conditions="a prompt of two tokens or more that fits one step",
    masked_by=("token-level tasks",),
    magnitude="every prompt with the same first token gets the same answer",
)
def first_token_for_last(runner: Runner) -> Undo:
    def first(hidden: torch.Tensor, batch: PoolingBatch) -> torch.Tensor:
        for entry in batch.entries:
            if entry.finishes and not entry.request.task.is_token_level:
                hidden[entry.row + entry.count - 1] = hidden[entry.row].clone()
        return hidden

    return on_hidden(runner, first)


@planted(
    name="final-norm-skipped",
    kind=FaultClass.POOLING,
    mechanism="poolers read the hidden states before the final norm",
    sources=("vllm#33167", "plur#270"),
    conditions="any prompt",
    magnitude="cosine about 0.95",
)
def final_norm_skipped(runner: Runner) -> Undo:
    return _without_final_norm(runner) if runner.is_last else nothing


@planted(
    name="final-norm-skipped-by-last-stage",
    kind=FaultClass.POOLING,
    mechanism="with several stages the last one hands on its hidden states before the final norm",
    sources=("vllm#33167",),
    exposed_by=exposed("pp=2"),
    conditions="any prompt",
    masked_by=("one stage",),
    magnitude="cosine about 0.95",
)
def final_norm_skipped_by_last_stage(runner: Runner) -> Undo:
    return _without_final_norm(runner) if runner.is_last and not runner.is_first else nothing


def _without_final_norm(runner: Runner) -> Undo:
    model = runner.model

    class _Bare:
        def __getattr__(self, name: str) -> Any:
            return getattr(model, name)

        def final_norm(self, x: torch.Tensor) -> torch.Tensor:
            return x

    return replace_method(runner, "model", _Bare())


@planted(
    name="mean-misses-first-token",
    kind=FaultClass.POOLING,
    mechanism="MEAN leaves out the first token, as if it were part of an instruction",
    sources=("sentence-transformers#3598",),
    conditions="MEAN pooling of two tokens or more",
    masked_by=("token-level tasks",),
    magnitude="cosine 0.8 to 0.99, more for short prompts",
    checkpoint="tiny-bert",
)
def mean_misses_first_token(runner: Runner) -> Undo:
    def miss(hidden: torch.Tensor, batch: PoolingBatch) -> torch.Tensor:
        for entry in batch.entries:
            if entry.count > 1 and not entry.request.task.is_token_level:
                rows = hidden[entry.row + 1 : entry.row + entry.count]
                hidden[entry.row] = rows.mean(dim=0)
        return hidden

    return on_hidden(runner, miss)


@planted(
    name="mean-over-padding",
    kind=FaultClass.POOLING,
    mechanism="MEAN divides by the longest prompt of the step, padding included",
    sources=("sentence-transformers#2569",),
    conditions="two prompts of different lengths, an embedding that is not normalised",
    masked_by=("normalisation", "one prompt at a time"),
    magnitude="the right direction, too short",
    checkpoint="tiny-bert",
)
def mean_over_padding(runner: Runner) -> Undo:
    def divide(hidden: torch.Tensor, batch: PoolingBatch) -> torch.Tensor:
        longest = max(entry.count for entry in batch.entries)
        for entry in batch.entries:
            if not entry.request.task.is_token_level:
                hidden[entry.row : entry.row + entry.count] *= entry.count / longest
        return hidden

    return on_hidden(runner, divide)

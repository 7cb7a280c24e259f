"""Heads that were not loaded, or loaded wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.faults.base import FaultClass, Undo, planted
from harness.faults.seams import on_each_answer

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.runner import Runner

CLASSIFIES = ("classify", "token_classify")


@planted(
    name="head-of-zeros",
    kind=FaultClass.HEAD,
    mechanism="the score head was never loaded and is all zeros",
    sources=("vllm#27857", "vllm#28117"),
    conditions="a score",
    masked_by=("embeddings",),
    magnitude="0.5 for every pair",
)
def head_of_zeros(runner: Runner) -> Undo:
    def constant(rows: torch.Tensor, request: Any) -> torch.Tensor:
        if request.task.value not in CLASSIFIES:
            return rows
        logits = rows * 0
        return logits if request.params.activation is False else logits.sigmoid()

    return on_each_answer(runner, constant)


@planted(
    name="yes-and-no-swapped",
    kind=FaultClass.HEAD,
    mechanism="the rows of yes and no change places",
    conditions="a score",
    masked_by=("embeddings",),
    magnitude="the order turned round",
)
def yes_and_no_swapped(runner: Runner) -> Undo:
    def swap(rows: torch.Tensor, request: Any) -> torch.Tensor:
        if request.task.value not in CLASSIFIES:
            return rows
        swapped: torch.Tensor = -rows if request.params.activation is False else 1 - rows
        return swapped

    return on_each_answer(runner, swap)


@planted(
    name="dimensions-without-normalising",
    kind=FaultClass.HEAD,
    mechanism="a shortened embedding keeps the length that its share of the whole had",
    sources=("vllm-metal#738", "dynamo#9722"),
    conditions="a request with dimensions",
    masked_by=("full embeddings", "no normalisation"),
    magnitude="norm below 1",
)
def dimensions_without_normalising(runner: Runner) -> Undo:
    def shorten(rows: torch.Tensor, request: Any) -> torch.Tensor:
        if request.params.dimensions is None or request.params.normalize is False:
            return rows
        share: float = (rows.shape[-1] / runner.model.config.hidden_size) ** 0.5
        return rows * share

    return on_each_answer(runner, shorten)

"""Normalisation and activation: left out, or done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.faults.base import FaultClass, Undo, planted
from harness.faults.seams import on_each_answer

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.runner import Runner


def _normalised(request: Any) -> bool:
    embeds = request.task.value in ("embed", "token_embed")
    return embeds and request.params.normalize is not False


def _activated(request: Any) -> bool:
    classifies = request.task.value in ("classify", "token_classify")
    return classifies and request.params.activation is not False


@planted(
    name="average-of-unit-vectors",
    kind=FaultClass.NORM,
    mechanism="a normalised vector is averaged with another and not normalised again",
    sources=("vllm#57498",),
    conditions="a normalised embedding",
    masked_by=("no normalisation",),
    magnitude="norm 0.707, direction unchanged",
)
def average_of_unit_vectors(runner: Runner) -> Undo:
    return on_each_answer(
        runner, lambda rows, request: rows * 0.5**0.5 if _normalised(request) else rows
    )


@planted(
    name="always-normalised",
    kind=FaultClass.NORM,
    mechanism="the caller's normalize=false is dropped",
    sources=("ollama#8094", "vllm#33361"),
    conditions="a request that says normalize=false",
    masked_by=("normalisation",),
    magnitude="norm 1 where it should be about 8",
)
def always_normalised(runner: Runner) -> Undo:
    def normalise(rows: torch.Tensor, request: Any) -> torch.Tensor:
        embeds = request.task.value in ("embed", "token_embed")
        return rows / rows.norm(dim=-1, keepdim=True) if embeds else rows

    return on_each_answer(runner, normalise)


@planted(
    name="activation-twice",
    kind=FaultClass.NORM,
    mechanism="the sigmoid is applied by the head and again by whoever serves the score",
    sources=("node-llama-cpp#617",),
    conditions="a score",
    masked_by=("logits asked for", "embeddings"),
    magnitude="0.997 becomes 0.731; the order survives",
)
def activation_twice(runner: Runner) -> Undo:
    return on_each_answer(
        runner, lambda rows, request: rows.sigmoid() if _activated(request) else rows
    )


@planted(
    name="activation-left-out",
    kind=FaultClass.NORM,
    mechanism="a score is handed out as a logit",
    sources=("open-webui#20228",),
    conditions="a score",
    masked_by=("logits asked for", "embeddings"),
    magnitude="beyond 0 and 1; the order survives",
)
def activation_left_out(runner: Runner) -> Undo:
    return on_each_answer(
        runner, lambda rows, request: rows.logit() if _activated(request) else rows
    )

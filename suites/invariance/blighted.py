"""A model with one token that is not a number: any prompt that holds it goes wrong in layer 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from engine.request import PoolingRequest
from engine.runner import Runner

BLIGHTED = f"{__name__}:blight"
BLIGHT, TWIN = 77, 78
"""Token ids: the one whose embedding is NaN, and one that is as it was."""


def blight(runner: Runner) -> Callable[[], None]:
    """Make the embedding of BLIGHT NaN, for every engine that shares the weights."""
    if not runner.is_first:
        return lambda: None
    config, model = runner.model.config, runner.model.model
    shape = (config.vocab_size, config.hidden_size)
    (table,) = (weight for weight in model.parameters() if tuple(weight.shape) == shape)
    kept = table[BLIGHT].clone()

    def fill(row: torch.Tensor) -> None:
        with torch.inference_mode():
            table[BLIGHT] = row

    fill(torch.full_like(kept, torch.nan))
    return lambda: fill(kept)


def with_token(request: PoolingRequest, token: int) -> PoolingRequest:
    """The request with this token in its middle, and BLIGHT nowhere else."""
    ids = [TWIN if t == BLIGHT else t for t in request.token_ids]
    ids[len(ids) // 2] = token
    return replace(request, token_ids=tuple(ids))

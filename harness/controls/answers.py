"""What pooling and heads may compute otherwise, in every cell alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.controls.base import Where, control
from harness.faults.plant import Undo, replace_method
from harness.faults.seams import nothing, on_each_answer

if TYPE_CHECKING:  # the table of controls is read without loading torch
    import torch

    from engine.pooling.base import PoolingBatch
    from engine.request import PoolingParams
    from engine.runner import Runner


@control(
    name="normalised-twice",
    difference="a unit vector is divided by its own norm once more",
    allowed="libraries and clients normalise what a server has normalised",
    where=Where.EVERYWHERE,
)
def normalised_twice(runner: Runner) -> Undo:
    def again(rows: torch.Tensor, request: Any) -> torch.Tensor:
        embeds = request.task.value in ("embed", "token_embed")
        if not embeds or request.params.normalize is False:
            return rows
        unit: torch.Tensor = rows / rows.norm(dim=-1, keepdim=True)
        return unit

    return on_each_answer(runner, again)


@control(
    name="sigmoid-by-tanh",
    difference="a score is (1 + tanh(z / 2)) / 2 of its logit z",
    allowed="the two are one function; it is also the softmax over (no, yes) of a reranker",
    where=Where.EVERYWHERE,
)
def sigmoid_by_tanh(runner: Runner) -> Undo:
    pooler = runner.pooler
    if pooler is None:
        return nothing

    def by_tanh(head: Any) -> Any:
        def answer(rows: torch.Tensor, params: PoolingParams) -> torch.Tensor:
            if params.activation is False:
                scores: torch.Tensor = head(rows, params)
                return scores
            logits: torch.Tensor = head(rows, replace(params, activation=False))
            return 0.5 * (1.0 + (0.5 * logits).tanh())

        return answer

    routes = {
        task: tuple(
            replace(part, head=by_tanh(part.head))
            if "classify" in task.value and getattr(part.head, "num_classes", 0) == 1
            else part
            for part in parts
        )
        for task, parts in pooler.routes.items()
    }
    return replace_method(pooler, "routes", routes)


@control(
    name="mean-by-one-sum",
    difference="MEAN is torch's own reduction over the rows, not tiles of 64",
    allowed="no order of a sum is part of the definition of a mean",
    where=Where.EVERYWHERE,
    checkpoint="tiny-bert",
)
def mean_by_one_sum(runner: Runner) -> Undo:
    pooler = runner.pooler
    if pooler is None:
        return nothing

    def mean(
        hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        # An encoder's prompt is whole in its step, so nothing is retained.
        entries = {i: batch.entries[i] for i in members}
        return {i: e.rows_of(hidden).mean(dim=0, keepdim=True) for i, e in entries.items()}

    methods = {
        spec: mean if "MEAN" in spec.names else method for spec, method in pooler.methods.items()
    }
    return replace_method(pooler, "methods", methods)

"""Norms, activations and residuals: the same formula, associated or written otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.controls.base import Where, control
from harness.faults.plant import Undo
from harness.faults.seams import is_chunked, nothing, on_block_parts

if TYPE_CHECKING:  # the table of controls is read without loading torch
    import torch

    from engine.runner import Runner


@control(
    name="norms-add-by-pairs",
    difference="the squares of an RMS norm are added pair by pair, as a tree",
    allowed="fused norm kernels reduce as trees; torch's own reduction is blocked",
    where=Where.EAGER,
)
def norms_add_by_pairs(runner: Runner) -> Undo:
    from engine.kernels import TORCH  # noqa: PLC0415 - only where a rank runs

    def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        squares, width = x.square(), x.shape[-1]
        while squares.shape[-1] % 2 == 0:
            squares = squares[..., 0::2] + squares[..., 1::2]
        mean = squares.sum(-1, keepdim=True) / width
        return weight * (x * (mean + eps).rsqrt())

    return on_block_parts(runner, kernels=replace(TORCH, rms_norm=rms_norm))


@control(
    name="chunks-weigh-norms-first",
    difference="chunked cells multiply by a norm's weight before they divide by its root",
    allowed="(w x) / r is w (x / r); fused kernels do either",
    where=Where.CHUNKED,
)
def chunks_weigh_norms_first(runner: Runner) -> Undo:
    from engine.kernels import TORCH  # noqa: PLC0415 - only where a rank runs

    def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        return (weight * x) / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()

    if not is_chunked(runner):
        return nothing
    return on_block_parts(runner, kernels=replace(TORCH, rms_norm=rms_norm))


@control(
    name="silu-by-tanh",
    difference="the gate is x / 2 (1 + tanh(x / 2)) instead of x / (1 + exp(-x))",
    allowed="the two are one function; GPUs have an instruction for tanh",
    where=Where.EAGER,
)
def silu_by_tanh(runner: Runner) -> Undo:
    def feed_forward(block: Any, x: torch.Tensor) -> torch.Tensor:
        normed = block.norm(x, block.feed_forward_norm)
        gate, up = block.kernels.linear(normed, block.gate_up).chunk(2, dim=-1)
        half = 0.5 * gate
        activated: torch.Tensor = block.kernels.linear(half * (1.0 + half.tanh()) * up, block.down)
        return activated

    return on_block_parts(runner, feed_forward=feed_forward)


@control(
    name="residuals-added-together",
    difference="a layer's two results are added to each other, then to the residual",
    allowed="x + (a + b) is (x + a) + b; norms fused with additions keep the residual apart",
    where=Where.EAGER,
)
def residuals_added_together(runner: Runner) -> Undo:
    def add_attention(block: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        block.before, block.first = x, y
        return x + y

    def add_feed_forward(block: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        del x
        whole: torch.Tensor = block.before + (block.first + y)
        return whole

    return on_block_parts(runner, add_attention=add_attention, add_feed_forward=add_feed_forward)

"""Where half precision is rounded: the places that definitions leave open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.controls.base import Where, control
from harness.faults.plant import Undo
from harness.faults.seams import on_block_parts

if TYPE_CHECKING:  # the table of controls is read without loading torch
    import torch

    from engine.runner import Runner


@control(
    name="norms-rounded-once",
    difference="an RMS norm takes its weight in float32 and is rounded to bfloat16 after it",
    allowed="fused norm kernels round once; the released code rounds before the weight too",
    where=Where.EAGER,
    dtype="bfloat16",
)
def norms_rounded_once(runner: Runner) -> Undo:
    from engine.kernels import TORCH  # noqa: PLC0415 - only where a rank runs

    def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        wide = x.float()
        scale = (wide.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
        return (weight.float() * wide * scale).to(x.dtype)

    return on_block_parts(runner, kernels=replace(TORCH, rms_norm=rms_norm))


@control(
    name="gates-rounded-once",
    difference="the gated feed-forward goes through float32 between its two products",
    allowed="a fused kernel keeps what is between two products in registers",
    where=Where.EAGER,
    dtype="bfloat16",
)
def gates_rounded_once(runner: Runner) -> Undo:
    from torch.nn.functional import silu  # noqa: PLC0415 - only where a rank runs

    def feed_forward(block: Any, x: torch.Tensor) -> torch.Tensor:
        normed = block.norm(x, block.feed_forward_norm)
        gate, up = block.kernels.linear(normed, block.gate_up).float().chunk(2, dim=-1)
        result: torch.Tensor = block.kernels.linear((silu(gate) * up).to(x.dtype), block.down)
        return result

    return on_block_parts(runner, feed_forward=feed_forward)


@control(
    name="residuals-rounded-once",
    difference="a layer's two results are added to the residual in float32 and rounded once",
    allowed="norms fused with additions hold the residual in registers",
    where=Where.EAGER,
    dtype="bfloat16",
)
def residuals_rounded_once(runner: Runner) -> Undo:
    def add_attention(block: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        block.whole = x.float() + y.float()
        rounded: torch.Tensor = block.whole.to(x.dtype)
        return rounded

    def add_feed_forward(block: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rounded: torch.Tensor = (block.whole + y.float()).to(x.dtype)
        return rounded

    return on_block_parts(runner, add_attention=add_attention, add_feed_forward=add_feed_forward)

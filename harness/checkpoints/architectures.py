"""What the tiny generated models share: sizes, and how each kind of tensor is drawn.

Dummy weights of tiny variance make a model blind: every cosine is 1.0, bug or no bug. These are
context-sensitive instead: projections N(0, 1/sqrt(fan_in)), embeddings N(0, 1), attention output
doubled so that attention rivals the residual stream, and queries tripled so that attention picks
tokens out instead of averaging them, in the q-norm where there is one, else in the query
projection. Norm weights and biases are drawn too (around one and zero): a loader that drops or
swaps one then changes the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.checkpoints.tensors import Draw

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE = 64, 4, 4, 2, 16, 192
ATTENTION_OUTPUT_GAIN, QUERY_GAIN = 2.0, 3.0
NORM_SPREAD = 0.1
BIAS_SPREAD, POSITION_SPREAD = 0.05, 0.25
"""Small beside the words' 1.0: what all prompts share makes them look alike (measured on tiny-bert,
MEAN of unrelated prompts: cosine up to 0.92 with 0.1 and 0.5, up to 0.68 with these)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A generated model: `config` becomes config.json, `tensors` model.safetensors."""

    config: dict[str, Any]
    tensors: dict[str, Draw]


def projection(outputs: int, inputs: int, *, gain: float = 1.0) -> Draw:
    return Draw(shape=(outputs, inputs), scale=gain / inputs**0.5)


def biased(name: str, outputs: int, inputs: int, *, gain: float = 1.0) -> dict[str, Draw]:
    return {
        f"{name}.weight": projection(outputs, inputs, gain=gain),
        f"{name}.bias": Draw(shape=(outputs,), scale=BIAS_SPREAD),
    }


def norm_weight() -> Draw:
    return Draw(shape=(HIDDEN,), scale=NORM_SPREAD, mean=1.0)


def layer_norm(name: str) -> dict[str, Draw]:
    return {
        f"{name}.weight": norm_weight(),
        f"{name}.bias": Draw(shape=(HIDDEN,), scale=BIAS_SPREAD),
    }

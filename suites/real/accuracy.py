"""Distance from float64, beside Hugging Face float32's own distance on the same prompts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

RELATIVE_L2 = 1e-5
"""Most an output may be off float64, whatever Hugging Face does. Worst seen, engine and Hugging
Face float32: rows of MiniLM and SmolLM2 1.8e-6 and 1.7e-6, SmolLM2's logits 4.6e-6 and 7.1e-6."""
TIMES_HUGGING_FACE = 2.0
"""Most the engine's worst error may be, in Hugging Face float32's own worst of the same prompts.
Both are samples of the same rounding noise, so prompt by prompt either may be ahead."""


def relative_l2(value: torch.Tensor, truth: torch.Tensor) -> float:
    """|value - truth| / |truth|, worst row; both [D] or [n, D], any float dtype."""
    value, truth = value.double(), truth.double()
    off = (value - truth).norm(dim=-1) / truth.norm(dim=-1)
    return float(off.max())


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One prompt: how far the engine and Hugging Face float32 are off float64."""

    prompt: str
    tokens: int
    engine: float
    hugging_face: float

    @property
    def row(self) -> tuple[str, int, float, float, float]:
        ratio = self.engine / self.hugging_face if self.hugging_face else float("inf")
        return (self.prompt, self.tokens, self.engine, self.hugging_face, ratio)


COLUMNS = ("prompt", "tokens", "engine", "Hugging Face float32", "ratio")


def worst(found: Iterable[Compared]) -> tuple[float, float]:
    """(engine, Hugging Face): the largest error of each over all prompts."""
    found = list(found)
    assert found, "nothing was compared"
    return max(c.engine for c in found), max(c.hugging_face for c in found)

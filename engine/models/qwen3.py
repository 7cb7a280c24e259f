"""Qwen3 (arXiv:2505.09388): each head of q and k is normalised before it is turned."""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.models.base import AttentionOptions
from engine.models.config import LayerKind, ModelConfig
from engine.models.decoder import DecoderBlock, DecoderModel
from engine.models.fields import Fields
from engine.models.qwen2 import upper_windows
from engine.weights import Shape


class Qwen3Block(DecoderBlock):
    """One norm weight [d] for all heads of q, one for all of k."""

    def __init__(
        self,
        config: ModelConfig,
        options: AttentionOptions,
        kind: LayerKind,
        read: Callable[[str], torch.Tensor],
    ) -> None:
        super().__init__(config, options, kind, read)
        self.q_norm = self.read_norm(read, "self_attn.q_norm")
        self.k_norm = self.read_norm(read, "self_attn.k_norm")

    @classmethod
    def tensor_shapes(cls, config: ModelConfig) -> dict[str, Shape]:
        norms = ("self_attn.q_norm.weight", "self_attn.k_norm.weight")
        return super().tensor_shapes(config) | dict.fromkeys(norms, (config.head_dim,))

    def normalise_heads(
        self, q: torch.Tensor, k: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.norm(q, self.q_norm), self.norm(k, self.k_norm)


class Qwen3Model(DecoderModel):
    """The decoder with q and k norms; windows as in Qwen2."""

    block_class = Qwen3Block

    @classmethod
    def layer_kinds(cls, fields: Fields, count: int) -> tuple[LayerKind, ...]:
        return upper_windows(fields, count)

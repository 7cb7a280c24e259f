"""Qwen3 (arXiv:2505.09388): each head of q and k is normalised before it is turned."""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.models.base import AttentionOptions
from engine.models.config import LayerKind, ModelConfig
from engine.models.decoder import DecoderBlock, DecoderModel
from engine.weights import Shape, frozen


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
        self.q_norm = frozen(read("self_attn.q_norm.weight"))
        self.k_norm = frozen(read("self_attn.k_norm.weight"))

    @classmethod
    def tensor_shapes(cls, config: ModelConfig) -> dict[str, Shape]:
        norms = ("self_attn.q_norm.weight", "self_attn.k_norm.weight")
        return super().tensor_shapes(config) | dict.fromkeys(norms, (config.head_dim,))

    def normalise_heads(
        self, q: torch.Tensor, k: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        norm = self.kernels.rms_norm
        return norm(q, self.q_norm, self.norm_eps), norm(k, self.k_norm, self.norm_eps)


class Qwen3Model(DecoderModel):
    """The decoder with q and k norms."""

    block_class = Qwen3Block

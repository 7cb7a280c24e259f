"""Gemma 3 (arXiv:2503.19786), the text model: decoder or, as in EmbeddingGemma, bidirectional.

Norms before and after both halves of a layer, norms of q and k, scaled embeddings, and layers of
two kinds: those with a window turn by angles of their own base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import torch
from torch import nn

from engine.kernels import Kernels
from engine.models.base import AttentionOptions
from engine.models.config import LayerKind, ModelConfig
from engine.models.decoder import DecoderModel
from engine.models.fields import FULL, SLIDING, Fields
from engine.models.qwen3 import Qwen3Block
from engine.weights import Shape, frozen

NORMS_AFTER: Final = ("post_attention_layernorm", "post_feedforward_layernorm")
FULL_BASE, SLIDING_BASE = 1_000_000.0, 10_000.0
"""Rotary bases of a config that names none (arXiv:2503.19786, section 2.1)."""


class Gemma3Block(Qwen3Block):
    """Qwen 3's q and k norms; each half of the layer is normalised again before it is added."""

    before_feed_forward = "pre_feedforward_layernorm"

    def __init__(
        self,
        config: ModelConfig,
        options: AttentionOptions,
        kind: LayerKind,
        read: Callable[[str], torch.Tensor],
    ) -> None:
        super().__init__(config, options, kind, read)
        self.after_attention, self.after_feed_forward = (
            self.read_norm(read, name) for name in NORMS_AFTER
        )

    @classmethod
    def tensor_shapes(cls, config: ModelConfig) -> dict[str, Shape]:
        norms = (cls.before_feed_forward, *NORMS_AFTER)
        shapes: dict[str, Shape] = {f"{name}.weight": (config.hidden_size,) for name in norms}
        return super().tensor_shapes(config) | shapes

    @classmethod
    def read_norm(cls, read: Callable[[str], torch.Tensor], name: str) -> nn.Parameter:
        """1 + what is stored, in float32 (float64 of float64): half precision would round it."""
        stored = read(f"{name}.weight")
        return frozen(1.0 + stored.to(torch.promote_types(stored.dtype, torch.float32)))

    @staticmethod
    def normalise(
        kernels: Kernels, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """In float32 to the end, and rounded once, as the released models were trained."""
        return kernels.rms_norm(x.to(weight.dtype), weight, eps).to(x.dtype)

    def add_attention(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + self.norm(y, self.after_attention)

    def add_feed_forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + self.norm(y, self.after_feed_forward)


class Gemma3Model(DecoderModel):
    """Causal, or with `use_bidirectional_attention` an encoder in all but its layers."""

    block_class = Gemma3Block

    @classmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        for name in ("attn_logit_softcapping", "final_logit_softcapping"):
            fields.refuse_unless(name, accepted=())
        activation = fields.choice(
            "hidden_activation", ("gelu_pytorch_tanh",), default="gelu_pytorch_tanh"
        )
        config = super().read_config(fields)
        return replace(
            config,
            attention_scale=fields.number("query_pre_attn_scalar", 256) ** -0.5,
            causal=not fields.flag("use_bidirectional_attention", default=False),
            activation=activation,
            tie_word_embeddings=fields.flag("tie_word_embeddings", default=True),
        )

    @classmethod
    def layer_kinds(cls, fields: Fields, count: int) -> tuple[LayerKind, ...]:
        """Five layers with a window, then one without, unless `layer_types` says otherwise."""
        every = fields.size("sliding_window_pattern", fields.size("_sliding_window_pattern", 6))
        sliding = fields.sliding_layers(count, lambda layer: (layer + 1) % every != 0)
        window = fields.size("sliding_window", 4096)
        return tuple(
            LayerKind(window=window, rotary=1) if narrow else LayerKind() for narrow in sliding
        )

    @classmethod
    def rope_thetas(cls, fields: Fields) -> tuple[float, ...]:
        return (
            fields.rope_theta_of(FULL, "rope_theta", FULL_BASE),
            fields.rope_theta_of(SLIDING, "rope_local_base_freq", SLIDING_BASE),
        )

    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        """Times sqrt(D), which is rounded to float32 and the embedding's dtype as in training."""
        scale = torch.tensor(self.config.hidden_size**0.5, dtype=torch.float32).to(self.dtype)
        return super().embed(token_ids, type_ids, positions) * scale.item()

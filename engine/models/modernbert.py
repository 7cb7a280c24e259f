"""ModernBERT (arXiv:2412.13663): pre-norm, rotary, gated; most layers see a window only.

Layers with a window turn by angles of their own base. The first layer has no norm before its
attention: the embedding is normalised already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from engine.layers.activation import ACTIVATIONS
from engine.layers.rotary import inverse_frequencies, rotary_tables
from engine.models.affine import Affine, Read
from engine.models.base import AttentionOptions, Block, Model
from engine.models.bert import whole_heads
from engine.models.config import LayerKind, ModelConfig
from engine.models.fields import FULL, SLIDING, Fields
from engine.models.split import layer_reader
from engine.weights import Checkpoint, Shape, frozen

PREFIXES = ("model.", "")
"""Before each name: a model with a head, and the encoder saved alone."""
HEADS = (r"head\..*", r"decoder\..*")
"""Names of the head that guesses masked words, which no pooling method reads."""
FULL_BASE, SLIDING_BASE = 160_000.0, 10_000.0
"""Rotary bases of a config that names none (arXiv:2412.13663, section 2.1)."""


class ModernBertBlock(Block):
    """q, k and v are one product, gate and value of the feed-forward another.

    The first layer's norm is computed like the others' and not used: `torch.where` on a tensor
    keeps its graph theirs.
    """

    column_split: ClassVar[Mapping[str, int]] = {"attn.Wqkv": 3, "mlp.Wi": 2}
    row_split: ClassVar[tuple[str, ...]] = ("attn.Wo", "mlp.Wo")

    def __init__(
        self,
        config: ModelConfig,
        options: AttentionOptions,
        kind: LayerKind,
        read: Read,
        *,
        first: bool,
    ) -> None:
        super().__init__(config, options, kind)
        self.activation = config.activation
        inner = config.feed_forward_bias
        self.qkv = Affine(read, "attn.Wqkv", bias=config.qkv_bias)
        self.output = Affine(read, "attn.Wo", bias=config.output_bias)
        norm = "mlp_norm" if first else "attn_norm"
        self.attention_norm = Affine(read, norm, bias=config.norm_bias)
        self.register_buffer("normalises", torch.tensor(not first), persistent=False)
        self.feed_forward_norm = Affine(read, "mlp_norm", bias=config.norm_bias)
        self.gate_up = Affine(read, "mlp.Wi", bias=inner)
        self.down = Affine(read, "mlp.Wo", bias=inner)

    @classmethod
    def tensor_shapes(cls, config: ModelConfig, *, first: bool) -> dict[str, Shape]:
        """Every tensor of one layer, by its name within the layer."""
        hidden, inner = config.hidden_size, config.intermediate_size
        weights: dict[str, tuple[Shape, bool]] = {
            "attn_norm": ((hidden,), config.norm_bias),
            "attn.Wqkv": ((3 * hidden, hidden), config.qkv_bias),
            "attn.Wo": ((hidden, hidden), config.output_bias),
            "mlp_norm": ((hidden,), config.norm_bias),
            "mlp.Wi": ((2 * inner, hidden), config.feed_forward_bias),
            "mlp.Wo": ((hidden, inner), config.feed_forward_bias),
        }
        if first:
            del weights["attn_norm"]
        shapes = {f"{name}.weight": shape for name, (shape, _bias) in weights.items()}
        return shapes | {
            f"{name}.bias": shape[:1] for name, (shape, bias) in weights.items() if bias
        }

    def attention_inputs(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        normed = self.attention_norm.norm(x, self.norm_eps)
        x = torch.where(self.get_buffer("normalises"), normed, x)
        heads = self.qkv.product(x, self.kernels).view(len(x), 3, self.num_heads, self.head_dim)
        q, k, v = heads.unbind(1)
        rotate = self.kernels.rotate
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def attention_output(self, attended: torch.Tensor) -> torch.Tensor:
        return self.output.product(attended, self.kernels)

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.feed_forward_norm.norm(x, self.norm_eps)
        value, gate = self.gate_up.product(normed, self.kernels).chunk(2, dim=-1)
        inner = ACTIVATIONS[self.activation](value) * gate
        return self.down.product(inner, self.kernels)


class ModernBertModel(Model):
    """The encoder alone."""

    block_class = ModernBertBlock

    def __init__(
        self,
        config: ModelConfig,
        checkpoint: Checkpoint,
        *,
        layers: range,
        dtype: torch.dtype,
        options: AttentionOptions,
    ) -> None:
        super().__init__(config, checkpoint, layers=layers, dtype=dtype)
        prefix = checkpoint.prefix("embeddings.tok_embeddings.weight", PREFIXES)
        checkpoint.check(
            self._tensor_shapes(prefix), optional={}, ignorable=HEADS if prefix else ()
        )

        def read(name: str) -> torch.Tensor:
            return checkpoint.read(prefix + name, dtype)

        self.words: nn.Parameter | None = None
        self.norm: Affine | None = None
        if self.is_first_stage:
            self.words = frozen(read("embeddings.tok_embeddings.weight"))
            self.embedding_norm = Affine(read, "embeddings.norm", bias=config.norm_bias)
        if self.is_last_stage:
            self.norm = Affine(read, "final_norm", bias=config.norm_bias)
        frequencies = [inverse_frequencies(config.head_dim, base) for base in config.rope_thetas]
        self.register_buffer("frequencies", torch.stack(frequencies), persistent=False)
        part = config.divided(checkpoint.tensor_ranks)
        for layer in layers:
            read_layer = layer_reader(
                checkpoint, ModernBertBlock, f"{prefix}layers.{layer}.", dtype
            )
            kind = config.layer_kinds[layer]
            self.blocks.append(ModernBertBlock(part, options, kind, read_layer, first=layer == 0))

    @classmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        head_dim, layers = whole_heads(fields, hidden, heads), fields.size("num_hidden_layers")
        every, window = fields.size("global_attn_every_n_layers", 3), fields.size("local_attention")
        sliding = fields.sliding_layers(layers, lambda layer: layer % every != 0)
        bias = fields.flag("attention_bias", default=False)
        return ModelConfig(
            architecture=fields.architecture,
            family="encoder",
            hidden_size=hidden,
            num_layers=layers,
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=head_dim,
            intermediate_size=fields.size("intermediate_size"),
            vocab_size=fields.size("vocab_size"),
            max_positions=fields.size("max_position_embeddings"),
            norm_eps=fields.number("norm_eps", 1e-5),
            attention_scale=head_dim**-0.5,
            causal=False,
            activation=fields.choice("hidden_activation", sorted(ACTIVATIONS), default="gelu"),
            layer_kinds=tuple(
                LayerKind(window=window, rotary=1) if narrow else LayerKind() for narrow in sliding
            ),
            rope_thetas=(
                fields.rope_theta_of(FULL, "global_rope_theta", FULL_BASE),
                fields.rope_theta_of(SLIDING, "local_rope_theta", SLIDING_BASE),
            ),
            tie_word_embeddings=fields.flag("tie_word_embeddings", default=True),
            qkv_bias=bias,
            output_bias=bias,
            norm_bias=fields.flag("norm_bias", default=False),
            feed_forward_bias=fields.flag("mlp_bias", default=False),
            checkpoint_dtype=fields.dtype,
        )

    def _tensor_shapes(self, prefix: str) -> dict[str, Shape]:
        config, hidden = self.config, self.config.hidden_size
        shapes: dict[str, Shape] = {"embeddings.tok_embeddings.weight": (config.vocab_size, hidden)}
        for norm in ("embeddings.norm", "final_norm"):
            shapes[f"{norm}.weight"] = (hidden,)
            if config.norm_bias:
                shapes[f"{norm}.bias"] = (hidden,)
        for layer in range(config.num_layers):
            per_layer = ModernBertBlock.tensor_shapes(config, first=layer == 0)
            shapes |= {f"layers.{layer}.{name}": shape for name, shape in per_layer.items()}
        return {prefix + name: shape for name, shape in shapes.items()}

    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        del type_ids, positions
        self._require_stage("the embedding", has=self.words is not None)
        assert self.words is not None
        return self.embedding_norm.norm(F.embedding(token_ids, self.words), self.config.norm_eps)

    def rotary(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return rotary_tables(positions, self.get_buffer("frequencies"), self.dtype)

    def final_norm(self, x: torch.Tensor) -> torch.Tensor:
        self._require_stage("the final norm", has=self.norm is not None)
        assert self.norm is not None
        return self.norm.norm(x, self.config.norm_eps)

    @property
    def lm_head_name(self) -> str | None:
        return None

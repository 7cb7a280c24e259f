"""Pre-norm decoder: RMS norms, rotary positions, grouped queries, gated feed-forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from engine.errors import UnsupportedModelError
from engine.kernels import Kernels, kernels_called
from engine.layers.activation import ACTIVATIONS
from engine.layers.rotary import inverse_frequencies, rotary_tables
from engine.models.base import AttentionOptions, Block, Model
from engine.models.config import LayerKind, ModelConfig
from engine.models.fields import Fields
from engine.models.split import layer_reader
from engine.weights import Checkpoint, Shape, frozen

PREFIXES = ("model.", "")
"""Before each name: a language model's checkpoint, and one saved from its backbone alone."""
DEFAULT_ROPE_THETA = 10_000.0
"""What a decoder config that names no theta means (arXiv:2104.09864, section 3.2.2)."""


class DecoderBlock(Block):
    """q, k and v are one product, gate and up another."""

    before_feed_forward: ClassVar[str] = "post_attention_layernorm"
    """Name of the norm before the feed-forward."""
    column_split: ClassVar[Mapping[str, int]] = {
        "self_attn.q_proj": 1,
        "self_attn.k_proj": 1,
        "self_attn.v_proj": 1,
        "mlp.gate_proj": 1,
        "mlp.up_proj": 1,
    }
    row_split: ClassVar[tuple[str, ...]] = ("self_attn.o_proj", "mlp.down_proj")

    def __init__(
        self,
        config: ModelConfig,
        options: AttentionOptions,
        kind: LayerKind,
        read: Callable[[str], torch.Tensor],
    ) -> None:
        super().__init__(config, options, kind)

        def joined(*names: str) -> nn.Parameter:
            return frozen(torch.cat([read(name) for name in names]))

        projections = [f"self_attn.{letter}_proj" for letter in "qkv"]
        self.activation = config.activation
        self.input_norm = self.read_norm(read, "input_layernorm")
        self.qkv = joined(*(f"{name}.weight" for name in projections))
        self.output = joined("self_attn.o_proj.weight")
        self.qkv_bias: nn.Parameter | None = None
        self.output_bias: nn.Parameter | None = None
        if config.qkv_bias:
            self.qkv_bias = joined(*(f"{name}.bias" for name in projections))
        if config.output_bias:
            self.output_bias = joined("self_attn.o_proj.bias")
        self.feed_forward_norm = self.read_norm(read, self.before_feed_forward)
        self.gate_up = joined("mlp.gate_proj.weight", "mlp.up_proj.weight")
        self.down = joined("mlp.down_proj.weight")

    @classmethod
    def read_norm(cls, read: Callable[[str], torch.Tensor], name: str) -> nn.Parameter:
        """What `normalise` multiplies with, [D], from the tensor that a checkpoint stores."""
        return frozen(read(f"{name}.weight"))

    @staticmethod
    def normalise(
        kernels: Kernels, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """The family's norm over the last dimension, which the final norm is as well."""
        return kernels.rms_norm(x, weight, eps)

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """`normalise` with this block's kernels."""
        return self.normalise(self.kernels, x, weight, self.norm_eps)

    @classmethod
    def tensor_shapes(cls, config: ModelConfig) -> dict[str, Shape]:
        """Every tensor of one layer, by its name within the layer."""
        hidden, inner = config.hidden_size, config.intermediate_size
        queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        shapes: dict[str, Shape] = {
            "input_layernorm.weight": (hidden,),
            "self_attn.q_proj.weight": (queries, hidden),
            "self_attn.k_proj.weight": (keys, hidden),
            "self_attn.v_proj.weight": (keys, hidden),
            "self_attn.o_proj.weight": (hidden, queries),
            "post_attention_layernorm.weight": (hidden,),
            "mlp.gate_proj.weight": (inner, hidden),
            "mlp.up_proj.weight": (inner, hidden),
            "mlp.down_proj.weight": (hidden, inner),
        }
        biased = ["q", "k", "v"] * config.qkv_bias + ["o"] * config.output_bias
        return shapes | {
            f"self_attn.{letter}_proj.bias": shapes[f"self_attn.{letter}_proj.weight"][:1]
            for letter in biased
        }

    def attention_inputs(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        normed = self.norm(x, self.input_norm)
        heads = self.kernels.linear(normed, self.qkv, self.qkv_bias).view(len(x), -1, self.head_dim)
        keys_end = self.num_heads + self.num_kv_heads
        q, k, v = (
            heads[:, : self.num_heads],
            heads[:, self.num_heads : keys_end],
            heads[:, keys_end:],
        )
        q, k = self.normalise_heads(q, k)
        rotate = self.kernels.rotate
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def normalise_heads(
        self, q: torch.Tensor, k: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What a family does to q [T, H, d] and k [T, H_kv, d] before turning them: nothing."""
        return q, k

    def attention_output(self, attended: torch.Tensor) -> torch.Tensor:
        return self.kernels.linear(attended, self.output, self.output_bias)

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x, self.feed_forward_norm)
        gate, up = self.kernels.linear(normed, self.gate_up).chunk(2, dim=-1)
        gated = ACTIVATIONS[self.activation](gate).mul_(up)
        return self.kernels.linear(gated, self.down)


def no_windows(fields: Fields, count: int) -> tuple[LayerKind, ...]:
    """Every one of `count` layers sees to either end; raises where `layer_types` disagrees."""
    if any(fields.sliding_layers(count, lambda _layer: False)):
        raise UnsupportedModelError(
            f"layer_types in {fields.file} has layers with a window, which {fields.architecture} "
            "has not by its other fields (sliding_window, use_sliding_window): make them agree"
        )
    return (LayerKind(),) * count


class DecoderModel(Model):
    """A family names its block; embedding, rotary angles and final norm are common to all."""

    block_class: ClassVar[type[DecoderBlock]] = DecoderBlock

    @classmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        """See `Model.read_config`; of the plain decoder, every layer of one kind."""
        fields.refuse_unless("is_causal", accepted=(True,))
        fields.refuse_unless("mlp_bias", accepted=(False,))
        hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        head_dim, layers = (
            fields.size("head_dim", hidden // heads),
            fields.size("num_hidden_layers"),
        )
        bias = fields.flag("attention_bias", default=False)
        return ModelConfig(
            architecture=fields.architecture,
            family="decoder",
            hidden_size=hidden,
            num_layers=layers,
            num_heads=heads,
            num_kv_heads=fields.size("num_key_value_heads", heads),
            head_dim=head_dim,
            intermediate_size=fields.size("intermediate_size"),
            vocab_size=fields.size("vocab_size"),
            max_positions=fields.size("max_position_embeddings"),
            norm_eps=fields.number("rms_norm_eps"),
            attention_scale=head_dim**-0.5,
            causal=True,
            activation=fields.choice("hidden_act", ("silu",), default="silu"),
            layer_kinds=cls.layer_kinds(fields, layers),
            rope_thetas=cls.rope_thetas(fields),
            tie_word_embeddings=fields.flag("tie_word_embeddings", default=False),
            qkv_bias=bias,
            output_bias=bias,
            checkpoint_dtype=fields.dtype,
        )

    @classmethod
    def layer_kinds(cls, fields: Fields, count: int) -> tuple[LayerKind, ...]:
        """One kind for each of `count` layers."""
        fields.refuse_unless("use_sliding_window", accepted=(False,))
        return no_windows(fields, count)

    @classmethod
    def rope_thetas(cls, fields: Fields) -> tuple[float, ...]:
        """Bases of the rotary tables that layer kinds refer to: one."""
        return (fields.rope_theta(DEFAULT_ROPE_THETA),)

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
        self.kernels = kernels_called(options.kernels)
        prefix = checkpoint.prefix("embed_tokens.weight", PREFIXES)
        self._names = prefix
        checkpoint.check(
            self._tensor_shapes(prefix),
            optional={"lm_head.weight": (config.vocab_size, config.hidden_size)},
            ignorable=(r".*\.rotary_emb\.inv_freq",),  # computed, but saved by old versions
        )
        self.embedding: nn.Parameter | None = None
        self.norm: nn.Parameter | None = None
        if self.is_first_stage:
            self.embedding = frozen(checkpoint.read(f"{prefix}embed_tokens.weight", dtype))
        if self.is_last_stage:
            self.norm = self.block_class.read_norm(
                lambda name: checkpoint.read(prefix + name, dtype), "norm"
            )
        frequencies = [inverse_frequencies(config.head_dim, base) for base in config.rope_thetas]
        self.register_buffer("frequencies", torch.stack(frequencies), persistent=False)
        part = config.divided(checkpoint.tensor_ranks)
        for layer in layers:
            read = layer_reader(checkpoint, self.block_class, f"{prefix}layers.{layer}.", dtype)
            self.blocks.append(self.block_class(part, options, config.layer_kinds[layer], read))

    def _tensor_shapes(self, prefix: str) -> dict[str, Shape]:
        config = self.config
        per_layer = self.block_class.tensor_shapes(config)
        return {
            f"{prefix}embed_tokens.weight": (config.vocab_size, config.hidden_size),
            f"{prefix}norm.weight": (config.hidden_size,),
        } | {
            f"{prefix}layers.{layer}.{name}": shape
            for layer in range(config.num_layers)
            for name, shape in per_layer.items()
        }

    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        del type_ids, positions
        self._require_stage("the embedding", has=self.embedding is not None)
        assert self.embedding is not None
        return F.embedding(token_ids, self.embedding)

    def rotary(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return rotary_tables(positions, self.get_buffer("frequencies"), self.dtype)

    def final_norm(self, x: torch.Tensor) -> torch.Tensor:
        self._require_stage("the final norm", has=self.norm is not None)
        assert self.norm is not None
        return self.block_class.normalise(self.kernels, x, self.norm, self.config.norm_eps)

    @property
    def lm_head_name(self) -> str | None:
        if self.config.tie_word_embeddings:
            return f"{self._names}embed_tokens.weight"
        return "lm_head.weight" if "lm_head.weight" in self._checkpoint else None

"""BERT (arXiv:1810.04805): post-norm, learned positions and segments, bidirectional."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from engine.errors import CheckpointError
from engine.layers.activation import ACTIVATIONS
from engine.models.affine import Affine, Read
from engine.models.base import AttentionOptions, Block, Model
from engine.models.config import LayerKind, ModelConfig
from engine.models.fields import Fields
from engine.models.split import layer_reader
from engine.weights import Checkpoint, Shape, frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockNames:
    """What a checkpoint calls the parts of a layer."""

    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    output: str = "attention.output.dense"
    output_norm: str = "attention.output.LayerNorm"
    up: str = "intermediate.dense"
    down: str = "output.dense"
    feed_forward_norm: str = "output.LayerNorm"


class BertBlock(Block):
    """q, k and v are one product."""

    names: ClassVar[BlockNames] = BlockNames()
    column_split: ClassVar[Mapping[str, int]] = {
        "attention.self.query": 1,
        "attention.self.key": 1,
        "attention.self.value": 1,
        "intermediate.dense": 1,
    }
    row_split: ClassVar[tuple[str, ...]] = ("attention.output.dense", "output.dense")

    def __init__(
        self, config: ModelConfig, options: AttentionOptions, kind: LayerKind, read: Read
    ) -> None:
        super().__init__(config, options, kind)
        names = self.names
        self.activation = config.activation
        self.qkv = Affine(read, names.query, names.key, names.value)
        self.output = Affine(read, names.output)
        self.output_norm = Affine(read, names.output_norm)
        self.up = Affine(read, names.up)
        self.down = Affine(read, names.down)
        self.feed_forward_norm = Affine(read, names.feed_forward_norm)

    @classmethod
    def tensor_shapes(cls, config: ModelConfig) -> dict[str, Shape]:
        """Every tensor of one layer, by its name within the layer."""
        hidden, inner, names = config.hidden_size, config.intermediate_size, cls.names
        weights: dict[str, Shape] = dict.fromkeys(astuple(names), (hidden, hidden))
        weights |= dict.fromkeys((names.output_norm, names.feed_forward_norm), (hidden,))
        weights |= {names.up: (inner, hidden), names.down: (hidden, inner)}
        biases: dict[str, Shape] = {f"{n}.bias": shape[:1] for n, shape in weights.items()}
        return {f"{name}.weight": shape for name, shape in weights.items()} | biases

    def attention_inputs(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        del cos, sin
        q, k, v = (
            self.qkv.product(x, self.kernels)
            .view(len(x), 3, self.num_heads, self.head_dim)
            .unbind(1)
        )
        return q, k, v

    def attention_output(self, attended: torch.Tensor) -> torch.Tensor:
        return self.output.product(attended, self.kernels)

    def add_attention(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.output_norm.norm(x + y, self.norm_eps)

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down.product(
            ACTIVATIONS[self.activation](self.up.product(x, self.kernels)), self.kernels
        )

    def add_feed_forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.feed_forward_norm.norm(x + y, self.norm_eps)


class BertModel(Model):
    """The encoder alone: a head over CLS, or one that guesses masked words, is not read."""

    block_class: ClassVar[type[BertBlock]] = BertBlock
    prefix: ClassVar[str] = "bert."
    """Before each name in the checkpoint of a model with a head; an encoder saved alone: none."""
    layers_at: ClassVar[str] = "encoder.layer."
    heads: ClassVar[tuple[str, ...]] = (r"cls\..*",)
    """Patterns of the names of heads that no pooling method reads, as whole models save them."""

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
        prefix = checkpoint.prefix("embeddings.word_embeddings.weight", (self.prefix, ""))
        checkpoint.check(
            self._tensor_shapes(prefix),
            optional={},
            # A range, saved by old versions; and the head that no pooling method here reads.
            ignorable=(
                r".*embeddings\.position_ids",
                rf"{prefix}pooler\.dense\.(weight|bias)",
                *(self.heads if prefix else ()),
            ),
        )

        def read(name: str) -> torch.Tensor:
            return checkpoint.read(prefix + name, dtype)

        self.words: nn.Parameter | None = None
        self.types: nn.Parameter | None = None
        if self.is_first_stage:
            self.words = frozen(read("embeddings.word_embeddings.weight"))
            self.positions = frozen(read("embeddings.position_embeddings.weight"))
            if config.type_vocab_size:
                self.types = frozen(read("embeddings.token_type_embeddings.weight"))
            self.embedding_norm = Affine(read, "embeddings.LayerNorm")
        part = config.divided(checkpoint.tensor_ranks)
        for layer in layers:
            within = f"{prefix}{self.layers_at}{layer}."
            read_layer = layer_reader(checkpoint, self.block_class, within, dtype)
            kind = config.layer_kinds[layer]
            self.blocks.append(self.block_class(part, options, kind, read_layer))

    @classmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        fields.refuse_unless("position_embedding_type", accepted=("absolute",))
        fields.refuse_unless("is_decoder", accepted=(False,))
        fields.refuse_unless("add_cross_attention", accepted=(False,))
        hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
        layers, head_dim = fields.size("num_hidden_layers"), whole_heads(fields, hidden, heads)
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
            norm_eps=fields.number("layer_norm_eps"),
            attention_scale=head_dim**-0.5,
            causal=False,
            activation=fields.choice("hidden_act", sorted(ACTIVATIONS), default="gelu"),
            layer_kinds=(LayerKind(),) * layers,
            tie_word_embeddings=fields.flag("tie_word_embeddings", default=True),
            type_vocab_size=fields.size("type_vocab_size"),
            qkv_bias=True,
            output_bias=True,
            checkpoint_dtype=fields.dtype,
        )

    @classmethod
    def num_positions(cls, config: ModelConfig) -> int:
        """Rows of the position table."""
        return config.max_positions

    def _tensor_shapes(self, prefix: str) -> dict[str, Shape]:
        config, hidden = self.config, self.config.hidden_size
        shapes: dict[str, Shape] = {
            "embeddings.word_embeddings.weight": (config.vocab_size, hidden),
            "embeddings.position_embeddings.weight": (self.num_positions(config), hidden),
            "embeddings.LayerNorm.weight": (hidden,),
            "embeddings.LayerNorm.bias": (hidden,),
        }
        if config.type_vocab_size:
            shapes["embeddings.token_type_embeddings.weight"] = (config.type_vocab_size, hidden)
        for layer in range(config.num_layers):
            for name, shape in self.block_class.tensor_shapes(config).items():
                shapes[f"{self.layers_at}{layer}.{name}"] = shape
        return {prefix + name: shape for name, shape in shapes.items()}

    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        self._require_stage("the embedding", has=self.words is not None)
        assert self.words is not None
        x = F.embedding(token_ids, self.words)
        if self.types is not None:
            x = x + F.embedding(type_ids, self.types)
        return self.embedding_norm.norm(
            x + F.embedding(positions, self.positions), self.config.norm_eps
        )

    def rotary(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        empty = torch.empty(1, len(positions), 0, dtype=self.dtype, device=positions.device)
        return empty, empty

    def final_norm(self, x: torch.Tensor) -> torch.Tensor:
        """x itself: every block ends in its norm."""
        self._require_stage("the final norm", has=self.is_last_stage)
        return x

    @property
    def lm_head_name(self) -> str | None:
        return None


def whole_heads(fields: Fields, hidden: int, heads: int) -> int:
    """Width of a head of an encoder, whose heads share the hidden size."""
    if hidden % heads:
        raise CheckpointError(
            f"hidden_size / num_attention_heads = {hidden} / {heads} in {fields.file}: expected no "
            "remainder"
        )
    return hidden // heads

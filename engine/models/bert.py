"""BERT (arXiv:1810.04805): post-norm, learned positions and segments, bidirectional."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from engine.kernels import Kernels
from engine.layers.activation import ACTIVATIONS
from engine.models.base import AttentionOptions, Block, Model
from engine.models.config import LayerKind, ModelConfig
from engine.models.split import layer_reader
from engine.weights import Checkpoint, Shape, frozen

PREFIXES = ("bert.", "")
"""Before each name: a model with a head, and the encoder saved alone."""

Read = Callable[[str], torch.Tensor]


class Affine(nn.Module):
    """Weight and bias, for a product or a layer norm."""

    def __init__(self, read: Read, *names: str) -> None:
        super().__init__()
        self.weight = frozen(torch.cat([read(f"{name}.weight") for name in names]))
        self.bias = frozen(torch.cat([read(f"{name}.bias") for name in names]))

    def product(self, x: torch.Tensor, kernels: Kernels) -> torch.Tensor:
        """x W^T + b: [T, K] -> [T, N]."""
        return kernels.linear(x, self.weight, self.bias)

    def norm(self, x: torch.Tensor, eps: float) -> torch.Tensor:
        """Layer norm over the last dimension (arXiv:1607.06450): [T, D] -> [T, D]."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps)


class BertBlock(Block):
    """q, k and v are one product."""

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
        self.activation = config.activation
        self.qkv = Affine(read, *(f"attention.self.{name}" for name in ("query", "key", "value")))
        self.output = Affine(read, "attention.output.dense")
        self.output_norm = Affine(read, "attention.output.LayerNorm")
        self.up = Affine(read, "intermediate.dense")
        self.down = Affine(read, "output.dense")
        self.feed_forward_norm = Affine(read, "output.LayerNorm")

    @classmethod
    def tensor_shapes(cls, config: ModelConfig) -> dict[str, Shape]:
        """Every tensor of one layer, by its name within the layer."""
        hidden, inner = config.hidden_size, config.intermediate_size
        weights: dict[str, Shape] = {
            "attention.self.query": (hidden, hidden),
            "attention.self.key": (hidden, hidden),
            "attention.self.value": (hidden, hidden),
            "attention.output.dense": (hidden, hidden),
            "attention.output.LayerNorm": (hidden,),
            "intermediate.dense": (inner, hidden),
            "output.dense": (hidden, inner),
            "output.LayerNorm": (hidden,),
        }
        biases: dict[str, Shape] = {f"{n}.bias": (shape[0],) for n, shape in weights.items()}
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
    """The encoder; its pooler, a head over CLS, is not part of the hidden states."""

    block_class = BertBlock

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
        prefix = checkpoint.prefix("embeddings.word_embeddings.weight", PREFIXES)
        checkpoint.check(
            self._tensor_shapes(prefix),
            optional={},
            # A range, saved by old versions; and the head that no pooling method here reads.
            ignorable=(r".*embeddings\.position_ids", rf"{prefix}pooler\.dense\.(weight|bias)"),
        )

        def read(name: str) -> torch.Tensor:
            return checkpoint.read(prefix + name, dtype)

        self.words: nn.Parameter | None = None
        if self.is_first_stage:
            self.words = frozen(read("embeddings.word_embeddings.weight"))
            self.positions = frozen(read("embeddings.position_embeddings.weight"))
            self.types = frozen(read("embeddings.token_type_embeddings.weight"))
            self.embedding_norm = Affine(read, "embeddings.LayerNorm")
        part = config.divided(checkpoint.tensor_ranks)
        for layer in layers:
            within = f"{prefix}encoder.layer.{layer}."
            read_layer = layer_reader(checkpoint, BertBlock, within, dtype)
            self.blocks.append(BertBlock(part, options, config.layer_kinds[layer], read_layer))

    def _tensor_shapes(self, prefix: str) -> dict[str, Shape]:
        config, hidden = self.config, self.config.hidden_size
        per_layer = BertBlock.tensor_shapes(config)
        return {
            f"{prefix}embeddings.word_embeddings.weight": (config.vocab_size, hidden),
            f"{prefix}embeddings.position_embeddings.weight": (config.max_positions, hidden),
            f"{prefix}embeddings.token_type_embeddings.weight": (config.type_vocab_size, hidden),
            f"{prefix}embeddings.LayerNorm.weight": (hidden,),
            f"{prefix}embeddings.LayerNorm.bias": (hidden,),
        } | {
            f"{prefix}encoder.layer.{layer}.{name}": shape
            for layer in range(config.num_layers)
            for name, shape in per_layer.items()
        }

    def embed(
        self, token_ids: torch.Tensor, type_ids: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        self._require_stage("the embedding", has=self.words is not None)
        assert self.words is not None
        x = F.embedding(token_ids, self.words) + F.embedding(type_ids, self.types)
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

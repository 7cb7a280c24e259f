"""DistilBERT (arXiv:1910.01108): BERT without segments, under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine.layers.activation import ACTIVATIONS
from engine.models.bert import BertBlock, BertModel, BlockNames, whole_heads
from engine.models.config import LayerKind, ModelConfig
from engine.models.fields import Fields


class DistilBertBlock(BertBlock):
    """BERT's block."""

    names = BlockNames(
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        output="attention.out_lin",
        output_norm="sa_layer_norm",
        up="ffn.lin1",
        down="ffn.lin2",
        feed_forward_norm="output_layer_norm",
    )
    column_split: ClassVar[Mapping[str, int]] = {
        "attention.q_lin": 1,
        "attention.k_lin": 1,
        "attention.v_lin": 1,
        "ffn.lin1": 1,
    }
    row_split = ("attention.out_lin", "ffn.lin2")


class DistilBertModel(BertModel):
    """Sinusoidal positions too are read as the table that the checkpoint holds."""

    block_class = DistilBertBlock
    prefix = "distilbert."
    layers_at = "transformer.layer."
    heads = (r"vocab_(transform|layer_norm|projector)\..*",)

    @classmethod
    def read_config(cls, fields: Fields) -> ModelConfig:
        hidden, heads, layers = (fields.size(name) for name in ("dim", "n_heads", "n_layers"))
        head_dim = whole_heads(fields, hidden, heads)
        return ModelConfig(
            architecture=fields.architecture,
            family="encoder",
            hidden_size=hidden,
            num_layers=layers,
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=head_dim,
            intermediate_size=fields.size("hidden_dim"),
            vocab_size=fields.size("vocab_size"),
            max_positions=fields.size("max_position_embeddings"),
            norm_eps=1e-12,  # not in the file: the reference's constant
            attention_scale=head_dim**-0.5,
            causal=False,
            activation=fields.choice("activation", sorted(ACTIVATIONS), default="gelu"),
            layer_kinds=(LayerKind(),) * layers,
            tie_word_embeddings=fields.flag("tie_word_embeddings", default=True),
            qkv_bias=True,
            output_bias=True,
            checkpoint_dtype=fields.dtype,
        )

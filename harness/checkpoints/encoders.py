"""The generated encoders: their `config.json` and the tensors to draw for each."""

from __future__ import annotations

from typing import Any

from harness.checkpoints.architectures import (
    ATTENTION_OUTPUT_GAIN,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    LAYERS,
    POSITION_SPREAD,
    QUERY_GAIN,
    Architecture,
    biased,
    layer_norm,
    norm_weight,
    projection,
)
from harness.checkpoints.tensors import Draw
from harness.checkpoints.tokenizer_json import ENCODER_SPECIALS, ROBERTA_SPECIALS, VOCAB_SIZE

MODERNBERT_WINDOW = 32
"""Tokens, half of them to either side."""


def bert(*, max_positions: int) -> Architecture:
    """`BertModel` with two segment types and its pooler."""
    config = _bert_config("bert", "BertModel", max_positions)
    return Architecture(config=config, tensors=_bert_tensors(max_positions, types=2))


def roberta(*, max_positions: int) -> Architecture:
    """`XLMRobertaModel`, one segment type, two rows of the position table before the first."""
    padding = ROBERTA_SPECIALS.index("<pad>")
    rows = max_positions + padding + 1
    config = _bert_config("xlm-roberta", "XLMRobertaModel", rows)
    config |= {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": padding}
    config |= {"bos_token_id": ROBERTA_SPECIALS.index("<s>")}
    config |= {"eos_token_id": ROBERTA_SPECIALS.index("</s>")}
    return Architecture(config=config, tensors=_bert_tensors(rows, types=1))


def distilbert(*, max_positions: int) -> Architecture:
    """`DistilBertModel`: BERT's tensors under other names, without segments and pooler."""
    config = {
        "architectures": ["DistilBertModel"],
        "model_type": "distilbert",
        "vocab_size": VOCAB_SIZE,
        "dim": HIDDEN,
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "hidden_dim": INTERMEDIATE,
        "activation": "gelu",
        "max_position_embeddings": max_positions,
        "sinusoidal_pos_embds": False,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "pad_token_id": ENCODER_SPECIALS.index("[PAD]"),
        "torch_dtype": "float32",
    }
    tensors: dict[str, Draw] = {}
    for name, spec in _bert_tensors(max_positions, types=0).items():
        for ours, theirs in _DISTILBERT_NAMES:
            name = name.replace(ours, theirs)
        if not name.startswith("pooler."):
            tensors[name] = spec
    return Architecture(config=config, tensors=tensors)


_DISTILBERT_NAMES = (
    ("encoder.layer", "transformer.layer"),
    ("attention.self.query", "attention.q_lin"),
    ("attention.self.key", "attention.k_lin"),
    ("attention.self.value", "attention.v_lin"),
    ("attention.output.dense", "attention.out_lin"),
    ("attention.output.LayerNorm", "sa_layer_norm"),
    ("intermediate.dense", "ffn.lin1"),
    ("output.dense", "ffn.lin2"),
    ("output.LayerNorm", "output_layer_norm"),
)
"""BERT's name for a part of a layer and DistilBERT's, longer ones before their ends."""


def modernbert(*, max_positions: int) -> Architecture:
    """`ModernBertModel`: layers 1 and 2 with a window, no biases, two rotary bases, as released.

    q, k and v are one tensor and so drawn at one scale: the root of the query's gain for all three
    gives the product of q and k that gain, and attention's output has what is left of its own.
    """
    config = {
        "architectures": ["ModernBertModel"],
        "model_type": "modernbert",
        "vocab_size": VOCAB_SIZE,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INTERMEDIATE,
        "hidden_activation": "gelu",
        "max_position_embeddings": max_positions,
        "norm_eps": 1e-5,
        "norm_bias": False,
        "attention_bias": False,
        "mlp_bias": False,
        "global_attn_every_n_layers": 3,
        "local_attention": MODERNBERT_WINDOW,
        "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0,
        "attention_dropout": 0.0,
        "embedding_dropout": 0.0,
        "mlp_dropout": 0.0,
        "initializer_range": 0.02,
        "cls_token_id": ENCODER_SPECIALS.index("[CLS]"),
        "sep_token_id": ENCODER_SPECIALS.index("[SEP]"),
        "bos_token_id": ENCODER_SPECIALS.index("[CLS]"),
        "eos_token_id": ENCODER_SPECIALS.index("[SEP]"),
        "pad_token_id": ENCODER_SPECIALS.index("[PAD]"),
        "torch_dtype": "float32",
    }
    shared = QUERY_GAIN**0.5
    tensors = {
        "embeddings.tok_embeddings.weight": Draw(shape=(VOCAB_SIZE, HIDDEN), scale=1.0),
        "embeddings.norm.weight": norm_weight(),
        "final_norm.weight": norm_weight(),
    }
    for layer in range(LAYERS):
        prefix = f"layers.{layer}."
        if layer:
            tensors[prefix + "attn_norm.weight"] = norm_weight()
        tensors |= {
            prefix + "attn.Wqkv.weight": projection(3 * HIDDEN, HIDDEN, gain=shared),
            prefix + "attn.Wo.weight": projection(
                HIDDEN, HIDDEN, gain=ATTENTION_OUTPUT_GAIN / shared
            ),
            prefix + "mlp_norm.weight": norm_weight(),
            prefix + "mlp.Wi.weight": projection(2 * INTERMEDIATE, HIDDEN),
            prefix + "mlp.Wo.weight": projection(HIDDEN, INTERMEDIATE),
        }
    return Architecture(config=config, tensors=tensors)


def _bert_config(model_type: str, architecture: str, rows: int) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": VOCAB_SIZE,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INTERMEDIATE,
        "hidden_act": "gelu",
        "max_position_embeddings": rows,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.02,
        "pad_token_id": ENCODER_SPECIALS.index("[PAD]"),
        "torch_dtype": "float32",
    }


def _bert_tensors(rows: int, *, types: int) -> dict[str, Draw]:
    tensors = {
        "embeddings.word_embeddings.weight": Draw(shape=(VOCAB_SIZE, HIDDEN), scale=1.0),
        "embeddings.position_embeddings.weight": Draw(shape=(rows, HIDDEN), scale=POSITION_SPREAD),
        **layer_norm("embeddings.LayerNorm"),
    }
    if types:
        spec = Draw(shape=(types, HIDDEN), scale=POSITION_SPREAD)
        tensors["embeddings.token_type_embeddings.weight"] = spec
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        tensors |= biased(prefix + "attention.self.query", HIDDEN, HIDDEN, gain=QUERY_GAIN)
        tensors |= biased(prefix + "attention.self.key", HIDDEN, HIDDEN)
        tensors |= biased(prefix + "attention.self.value", HIDDEN, HIDDEN)
        tensors |= biased(
            prefix + "attention.output.dense", HIDDEN, HIDDEN, gain=ATTENTION_OUTPUT_GAIN
        )
        tensors |= layer_norm(prefix + "attention.output.LayerNorm")
        tensors |= biased(prefix + "intermediate.dense", INTERMEDIATE, HIDDEN)
        tensors |= biased(prefix + "output.dense", HIDDEN, INTERMEDIATE)
        tensors |= layer_norm(prefix + "output.LayerNorm")
    return tensors | biased("pooler.dense", HIDDEN, HIDDEN)

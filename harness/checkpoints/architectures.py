"""The tiny generated models: their `config.json` and the tensors to draw for each.

Dummy weights of tiny variance make a model blind: every cosine is 1.0, bug or no bug. These are
context-sensitive instead: projections N(0, 1/sqrt(fan_in)), embeddings N(0, 1), attention output
doubled so that attention rivals the residual stream, and queries tripled so that attention picks
tokens out instead of averaging them. Qwen3 triples them in its q-norm; Llama and BERT, which have
none, in the query projection. Norm weights and biases are drawn too (around one and zero): a loader
that drops or swaps one then changes the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.checkpoints.tensors import Draw
from harness.checkpoints.tokenizer_json import (
    DECODER_SPECIALS,
    ENCODER_SPECIALS,
    END_OF_TEXT,
    VOCAB_SIZE,
)

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE = 64, 4, 4, 2, 16, 192
ATTENTION_OUTPUT_GAIN, QUERY_GAIN = 2.0, 3.0
NORM_SPREAD = 0.1
BIAS_SPREAD, POSITION_SPREAD = 0.05, 0.25
"""Small beside the words' 1.0: what all prompts share makes them look alike (measured on tiny-bert,
MEAN of unrelated prompts: cosine up to 0.92 with 0.1 and 0.5, up to 0.68 with these)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A generated model: `config` becomes config.json, `tensors` model.safetensors."""

    config: dict[str, Any]
    tensors: dict[str, Draw]


def qwen3(*, max_positions: int) -> Architecture:
    """`Qwen3ForCausalLM`, tied LM head, q-norm and k-norm, rope theta and epsilon as released."""
    norms = {"self_attn.q_norm.weight": QUERY_GAIN, "self_attn.k_norm.weight": 1.0}
    head_norms = {
        f"model.layers.{layer}.{name}": Draw(shape=(HEAD_DIM,), scale=NORM_SPREAD * mean, mean=mean)
        for layer in range(LAYERS)
        for name, mean in norms.items()
    }
    config = _decoder_config("qwen3", "Qwen3ForCausalLM", max_positions, rope_theta=1_000_000.0)
    config |= {"use_sliding_window": False, "sliding_window": None, "max_window_layers": LAYERS}
    return Architecture(config=config, tensors=_decoder_tensors(query_gain=1.0) | head_norms)


def llama(*, max_positions: int) -> Architecture:
    """`LlamaForCausalLM`, tied LM head, grouped queries, theta and epsilon as SmolLM2-135M."""
    config = _decoder_config("llama", "LlamaForCausalLM", max_positions, rope_theta=100_000.0)
    config |= {"rms_norm_eps": 1e-5, "mlp_bias": False}
    return Architecture(config=config, tensors=_decoder_tensors(query_gain=QUERY_GAIN))


def bert(*, max_positions: int) -> Architecture:
    """`BertModel` with two segment types and its pooler."""
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": VOCAB_SIZE,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INTERMEDIATE,
        "hidden_act": "gelu",
        "max_position_embeddings": max_positions,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.02,
        "pad_token_id": ENCODER_SPECIALS.index("[PAD]"),
        "torch_dtype": "float32",
    }
    tensors = {
        "embeddings.word_embeddings.weight": Draw(shape=(VOCAB_SIZE, HIDDEN), scale=1.0),
        "embeddings.position_embeddings.weight": Draw(
            shape=(max_positions, HIDDEN), scale=POSITION_SPREAD
        ),
        "embeddings.token_type_embeddings.weight": Draw(shape=(2, HIDDEN), scale=POSITION_SPREAD),
        **_layer_norm("embeddings.LayerNorm"),
    }
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        tensors |= _biased(prefix + "attention.self.query", HIDDEN, HIDDEN, gain=QUERY_GAIN)
        tensors |= _biased(prefix + "attention.self.key", HIDDEN, HIDDEN)
        tensors |= _biased(prefix + "attention.self.value", HIDDEN, HIDDEN)
        tensors |= _biased(
            prefix + "attention.output.dense", HIDDEN, HIDDEN, gain=ATTENTION_OUTPUT_GAIN
        )
        tensors |= _layer_norm(prefix + "attention.output.LayerNorm")
        tensors |= _biased(prefix + "intermediate.dense", INTERMEDIATE, HIDDEN)
        tensors |= _biased(prefix + "output.dense", HIDDEN, INTERMEDIATE)
        tensors |= _layer_norm(prefix + "output.LayerNorm")
    return Architecture(config=config, tensors=tensors | _biased("pooler.dense", HIDDEN, HIDDEN))


def _decoder_config(
    model_type: str, architecture: str, max_positions: int, *, rope_theta: float
) -> dict[str, Any]:
    end = VOCAB_SIZE - len(DECODER_SPECIALS) + DECODER_SPECIALS.index(END_OF_TEXT)
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": VOCAB_SIZE,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "intermediate_size": INTERMEDIATE,
        "hidden_act": "silu",
        "max_position_embeddings": max_positions,
        "rms_norm_eps": 1e-6,
        "rope_theta": rope_theta,
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "bos_token_id": None,
        "eos_token_id": end,
        "pad_token_id": end,
        "torch_dtype": "float32",
    }


def _decoder_tensors(*, query_gain: float) -> dict[str, Draw]:
    tensors = {
        "model.embed_tokens.weight": Draw(shape=(VOCAB_SIZE, HIDDEN), scale=1.0),
        "model.norm.weight": _norm_weight(),
    }
    queries, keys = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        tensors |= {
            prefix + "input_layernorm.weight": _norm_weight(),
            prefix + "self_attn.q_proj.weight": _projection(queries, HIDDEN, gain=query_gain),
            prefix + "self_attn.k_proj.weight": _projection(keys, HIDDEN),
            prefix + "self_attn.v_proj.weight": _projection(keys, HIDDEN),
            prefix + "self_attn.o_proj.weight": _projection(
                HIDDEN, queries, gain=ATTENTION_OUTPUT_GAIN
            ),
            prefix + "post_attention_layernorm.weight": _norm_weight(),
            prefix + "mlp.gate_proj.weight": _projection(INTERMEDIATE, HIDDEN),
            prefix + "mlp.up_proj.weight": _projection(INTERMEDIATE, HIDDEN),
            prefix + "mlp.down_proj.weight": _projection(HIDDEN, INTERMEDIATE),
        }
    return tensors


def _projection(outputs: int, inputs: int, *, gain: float = 1.0) -> Draw:
    return Draw(shape=(outputs, inputs), scale=gain / inputs**0.5)


def _biased(name: str, outputs: int, inputs: int, *, gain: float = 1.0) -> dict[str, Draw]:
    return {
        f"{name}.weight": _projection(outputs, inputs, gain=gain),
        f"{name}.bias": Draw(shape=(outputs,), scale=BIAS_SPREAD),
    }


def _norm_weight() -> Draw:
    return Draw(shape=(HIDDEN,), scale=NORM_SPREAD, mean=1.0)


def _layer_norm(name: str) -> dict[str, Draw]:
    return {
        f"{name}.weight": _norm_weight(),
        f"{name}.bias": Draw(shape=(HIDDEN,), scale=BIAS_SPREAD),
    }

"""The generated decoders: their `config.json` and the tensors to draw for each."""

from __future__ import annotations

from typing import Any

from harness.checkpoints.architectures import (
    ATTENTION_OUTPUT_GAIN,
    BIAS_SPREAD,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    LAYERS,
    NORM_SPREAD,
    QUERY_GAIN,
    Architecture,
    norm_weight,
    projection,
)
from harness.checkpoints.tensors import Draw
from harness.checkpoints.tokenizer_json import DECODER_SPECIALS, END_OF_TEXT, VOCAB_SIZE

MISTRAL_WINDOW, GEMMA3_WINDOW = 40, 32
"""Tokens. Short beside prompts of 200, of which a chunk of 16 then crosses many."""


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


def qwen2(*, max_positions: int) -> Architecture:
    """`Qwen2ForCausalLM`, tied LM head, biases on q, k and v, no windows, as released."""
    config = _decoder_config("qwen2", "Qwen2ForCausalLM", max_positions, rope_theta=1_000_000.0)
    config |= {"use_sliding_window": False, "sliding_window": 131072, "max_window_layers": LAYERS}
    del config["attention_bias"], config["head_dim"]  # the family's files have neither
    tensors = _decoder_tensors(query_gain=QUERY_GAIN)
    biases = {
        f"model.layers.{layer}.self_attn.{letter}_proj.bias": Draw(
            shape=(heads * HEAD_DIM,), scale=BIAS_SPREAD
        )
        for layer in range(LAYERS)
        for letter, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS))
    }
    return Architecture(config=config, tensors=tensors | biases)


def mistral(*, max_positions: int) -> Architecture:
    """`MistralForCausalLM`, a window in every layer, an LM head of its own."""
    config = _decoder_config("mistral", "MistralForCausalLM", max_positions, rope_theta=10_000.0)
    config |= {
        "sliding_window": MISTRAL_WINDOW,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
    }
    head = {"lm_head.weight": Draw(shape=(VOCAB_SIZE, HIDDEN), scale=1.0)}
    return Architecture(config=config, tensors=_decoder_tensors(query_gain=QUERY_GAIN) | head)


def gemma3(*, max_positions: int) -> Architecture:
    """`Gemma3TextModel` as in EmbeddingGemma: bidirectional, half the layers with a window.

    Norms hold what is added to one, so theirs are drawn around zero, around two for q and around
    one after attention: those gains of the other families would be normalised away here.
    Embeddings are drawn small and come out N(0, 1), since the model scales them.
    """
    config = _decoder_config(
        "gemma3_text", "Gemma3TextModel", max_positions, rope_theta=1_000_000.0
    )
    del config["hidden_act"]
    config |= {
        "hidden_activation": "gelu_pytorch_tanh",
        "rope_local_base_freq": 10_000.0,
        "use_bidirectional_attention": True,
        "sliding_window": GEMMA3_WINDOW,
        "layer_types": ["sliding_attention", "full_attention"] * (LAYERS // 2),
        "query_pre_attn_scalar": 20,  # not the head's width, to tell the two apart
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    }
    means = {
        "input_layernorm": 0.0,
        "self_attn.q_norm": QUERY_GAIN - 1.0,
        "self_attn.k_norm": 0.0,
        "post_attention_layernorm": ATTENTION_OUTPUT_GAIN - 1.0,
        "pre_feedforward_layernorm": 0.0,
        "post_feedforward_layernorm": 0.0,
    }
    tensors = _decoder_tensors(query_gain=1.0) | {
        f"model.layers.{layer}.{name}.weight": Draw(
            shape=(HEAD_DIM if "self_attn" in name else HIDDEN,), scale=NORM_SPREAD, mean=mean
        )
        for layer in range(LAYERS)
        for name, mean in means.items()
    }
    tensors["model.norm.weight"] = Draw(shape=(HIDDEN,), scale=NORM_SPREAD)
    tensors["model.embed_tokens.weight"] = Draw(shape=(VOCAB_SIZE, HIDDEN), scale=HIDDEN**-0.5)
    bare = {name.removeprefix("model."): spec for name, spec in tensors.items()}
    return Architecture(config=config, tensors=bare)


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
        "model.norm.weight": norm_weight(),
    }
    queries, keys = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        tensors |= {
            prefix + "input_layernorm.weight": norm_weight(),
            prefix + "self_attn.q_proj.weight": projection(queries, HIDDEN, gain=query_gain),
            prefix + "self_attn.k_proj.weight": projection(keys, HIDDEN),
            prefix + "self_attn.v_proj.weight": projection(keys, HIDDEN),
            prefix + "self_attn.o_proj.weight": projection(
                HIDDEN, queries, gain=ATTENTION_OUTPUT_GAIN
            ),
            prefix + "post_attention_layernorm.weight": norm_weight(),
            prefix + "mlp.gate_proj.weight": projection(INTERMEDIATE, HIDDEN),
            prefix + "mlp.up_proj.weight": projection(INTERMEDIATE, HIDDEN),
            prefix + "mlp.down_proj.weight": projection(HIDDEN, INTERMEDIATE),
        }
    return tensors

"""A checkpoint of a given shape, written with random weights: for measuring, not for meaning."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

QWEN3_0_6B = {
    "architectures": ["Qwen3ForCausalLM"],
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 32768,
    "model_type": "qwen3",
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
}


def write(folder: Path, config: dict[str, object]) -> Path:
    """config.json and model.safetensors of a Qwen3 decoder in bfloat16; N(0, 1 / fan_in)."""
    folder.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device).manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        scale = shape[-1] ** -0.5 if len(shape) > 1 else 1.0
        drawn = torch.randn(shape, generator=generator, device=device)
        return ((drawn * scale) if len(shape) > 1 else drawn.abs() + 0.5).bfloat16().cpu()

    size = {name: int(str(config[name])) for name in config if type(config[name]) is int}
    hidden, inner, head = size["hidden_size"], size["intermediate_size"], size["head_dim"]
    queries, keys = size["num_attention_heads"] * head, size["num_key_value_heads"] * head
    tensors = {
        "model.embed_tokens.weight": draw(size["vocab_size"], hidden) * hidden**0.5,
        "model.norm.weight": draw(hidden),
    }
    for layer in range(size["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        tensors |= {
            f"{at}input_layernorm.weight": draw(hidden),
            f"{at}post_attention_layernorm.weight": draw(hidden),
            f"{at}self_attn.q_proj.weight": draw(queries, hidden),
            f"{at}self_attn.k_proj.weight": draw(keys, hidden),
            f"{at}self_attn.v_proj.weight": draw(keys, hidden),
            f"{at}self_attn.o_proj.weight": draw(hidden, queries),
            f"{at}self_attn.q_norm.weight": draw(head),
            f"{at}self_attn.k_norm.weight": draw(head),
            f"{at}mlp.gate_proj.weight": draw(inner, hidden),
            f"{at}mlp.up_proj.weight": draw(inner, hidden),
            f"{at}mlp.down_proj.weight": draw(hidden, inner),
        }
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder

"""The Qwen3-shaped decoder and BERT again, in numpy float64, written from their papers.

Shares nothing with Hugging Face but the weights and the float32 rotary table, which is part of the
model's definition and therefore taken from the same torch functions.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float64]


def load(folder: Path) -> tuple[dict[str, Array], dict[str, object]]:
    tensors = load_file(folder / "model.safetensors")
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    return weights, json.loads((folder / "config.json").read_text())


def decoder(folder: Path, ids: list[int]) -> list[Array]:
    """The stream after each layer, then the final hidden states; each [n, D]."""
    w, c = load(folder)
    x = w["model.embed_tokens.weight"][ids]
    n, hd, epsilon = len(ids), int(c["head_dim"]), float(c["rms_norm_eps"])
    cos, sin = rotary(n, hd, float(c["rope_theta"]))

    def norm(value: Array, name: str) -> Array:
        return w[name] * value / np.sqrt((value**2).mean(-1, keepdims=True) + epsilon)

    def heads(value: Array, name: str) -> Array:
        split = value.reshape(n, -1, hd)
        split = norm(split, name) if name in w else split
        half = np.concatenate([-split[..., hd // 2 :], split[..., : hd // 2]], axis=-1)
        return split * cos[:, None] + half * sin[:, None]

    visible = np.tril(np.ones((n, n), dtype=bool))
    streams = []
    for layer in range(int(c["num_hidden_layers"])):
        p = f"model.layers.{layer}."
        y = norm(x, p + "input_layernorm.weight")
        q = heads(y @ w[p + "self_attn.q_proj.weight"].T, p + "self_attn.q_norm.weight")
        k = heads(y @ w[p + "self_attn.k_proj.weight"].T, p + "self_attn.k_norm.weight")
        v = (y @ w[p + "self_attn.v_proj.weight"].T).reshape(n, -1, hd)
        group = q.shape[1] // k.shape[1]
        mixed = [
            attend(q[:, h], k[:, h // group], v[:, h // group], visible) for h in range(q.shape[1])
        ]
        x = x + np.concatenate(mixed, axis=-1) @ w[p + "self_attn.o_proj.weight"].T
        y = norm(x, p + "post_attention_layernorm.weight")
        gate, up = y @ w[p + "mlp.gate_proj.weight"].T, y @ w[p + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[p + "mlp.down_proj.weight"].T
        streams.append(x)
    return [*streams, norm(x, "model.norm.weight")]


def bert(folder: Path, ids: list[int], types: list[int]) -> list[Array]:
    """The stream after each layer, then (again) the final hidden states; each [n, D]."""
    w, c = load(folder)
    n, count = len(ids), int(c["num_attention_heads"])

    def norm(value: Array, name: str) -> Array:
        centred = value - value.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        unit = centred / np.sqrt(variance + float(c["layer_norm_eps"]))
        return w[name + ".weight"] * unit + w[name + ".bias"]

    def dense(value: Array, name: str) -> Array:
        return value @ w[name + ".weight"].T + w[name + ".bias"]

    erf = np.vectorize(math.erf)
    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][:n]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][types], "embeddings.LayerNorm")
    streams, everything = [], np.ones((n, n), dtype=bool)
    for layer in range(int(c["num_hidden_layers"])):
        p = f"encoder.layer.{layer}."
        q, k, v = (
            dense(x, p + f"attention.self.{part}").reshape(n, count, -1)
            for part in ("query", "key", "value")
        )
        mixed = [attend(q[:, h], k[:, h], v[:, h], everything) for h in range(count)]
        attended = dense(np.concatenate(mixed, axis=-1), p + "attention.output.dense")
        x = norm(x + attended, p + "attention.output.LayerNorm")
        inner = dense(x, p + "intermediate.dense")
        inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
        x = norm(x + dense(inner, p + "output.dense"), p + "output.LayerNorm")
        streams.append(x)
    return [*streams, x]


def attend(q: Array, k: Array, v: Array, visible: NDArray[np.bool_]) -> Array:
    """softmax(q k^T / sqrt(d)) v over the visible pairs; [n, d] each."""
    scores = np.where(visible, q @ k.T / math.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def rotary(n: int, hd: int, theta: float) -> tuple[Array, Array]:
    """The float32 cosine and sine tables, [n, hd], widened to float64."""
    inverse = 1.0 / (theta ** (torch.arange(0, hd, 2, dtype=torch.float32) / hd))
    angles = torch.arange(n, dtype=torch.float32)[:, None] * inverse
    table = torch.cat([angles, angles], dim=-1)
    return table.cos().double().numpy(), table.sin().double().numpy()

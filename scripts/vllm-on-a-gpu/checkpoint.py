"""Writes a context-sensitive random Qwen3 in bfloat16, and cases for it, where a GPU is.

    python3 checkpoint.py FOLDER [--layers 36] [--hidden 2560] [--intermediate 9728] [--heads 32]

The defaults are the shape of a 4B model: a race needs the device to lag the host, and smaller ones
are too quick on a large GPU. Weights of tiny variance would hide every bug (each cosine is then
1), so projections are N(0, 1/sqrt(fan_in)), embeddings N(0, 1), the attention output is doubled and
the q-norm's weight is 3.

Writes FOLDER/cases.jsonl: six prompts of 8,051 tokens, each a case of its own, or as --task,
--cases, --prompts, --least and --tokens say. A model that is already there is left as it is.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import torch
from safetensors.torch import save_file

VOCABULARY, POSITIONS, HEAD, KV_HEADS = 4096, 16384, 128, 8
LONG, CASES = 8051, 6
EMBED, TOKEN_EMBED, PLAIN = "embed", "token_embed", "token_embed-plain"
"""What a case asks for; plain: token embeddings as the model leaves them, not normalised."""


def tensors(shape: argparse.Namespace) -> dict[str, torch.Tensor]:
    """Every weight, drawn on the GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    draw = torch.Generator(device).manual_seed(20260)

    def normal(rows: int, columns: int, scale: float) -> torch.Tensor:
        found = torch.randn(rows, columns, generator=draw, device=device) * scale
        return found.to(torch.bfloat16).cpu()

    def norm(width: int, mean: float = 1.0) -> torch.Tensor:
        found = mean * (1 + 0.1 * torch.randn(width, generator=draw, device=device))
        return found.to(torch.bfloat16).cpu()

    hidden, queries, keys = shape.hidden, shape.heads * HEAD, KV_HEADS * HEAD
    inner = shape.intermediate
    found = {"model.embed_tokens.weight": normal(VOCABULARY, hidden, 1.0)}
    for layer in range(shape.layers):
        p = f"model.layers.{layer}."
        found |= {
            p + "input_layernorm.weight": norm(hidden),
            p + "post_attention_layernorm.weight": norm(hidden),
            p + "self_attn.q_norm.weight": norm(HEAD, 3.0),
            p + "self_attn.k_norm.weight": norm(HEAD),
            p + "self_attn.q_proj.weight": normal(queries, hidden, hidden**-0.5),
            p + "self_attn.k_proj.weight": normal(keys, hidden, hidden**-0.5),
            p + "self_attn.v_proj.weight": normal(keys, hidden, hidden**-0.5),
            p + "self_attn.o_proj.weight": normal(hidden, queries, 2 * queries**-0.5),
            p + "mlp.gate_proj.weight": normal(inner, hidden, hidden**-0.5),
            p + "mlp.up_proj.weight": normal(inner, hidden, hidden**-0.5),
            p + "mlp.down_proj.weight": normal(
                hidden, shape.intermediate, shape.intermediate**-0.5
            ),
        }
    return found | {"model.norm.weight": norm(hidden)}


def config(shape: argparse.Namespace) -> dict[str, object]:
    """`config.json` of a Qwen3 with a tied head."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": VOCABULARY,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "intermediate_size": shape.intermediate,
        "hidden_act": "silu",
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000.0,
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": shape.layers,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 1,
        "torch_dtype": "bfloat16",
    }


def write(folder: Path, shape: argparse.Namespace) -> None:
    """The model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(shape), indent=1))
    save_file(tensors(shape), folder / "model.safetensors", metadata={"format": "pt"})
    vocabulary = {f"t{i}": i for i in range(VOCABULARY)}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "t0"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "t1", "pad_token": "t1"}
        )
    )


def write_cases(place: Path, shape: argparse.Namespace) -> None:
    """Cases of prompts of random ids."""
    draw = random.Random(20260)
    asked: dict[str, object] = {"task": shape.task.removesuffix("-plain")}
    if shape.task == PLAIN:
        asked["normalize"] = False
    with place.open("w") as cases:
        for _ in range(shape.cases):
            lengths = [
                draw.randint(shape.least or shape.tokens, shape.tokens)
                for _ in range(shape.prompts)
            ]
            prompts = [
                {"tokens": [draw.randrange(2, VOCABULARY) for _ in range(length)]}
                for length in lengths
            ]
            cases.write(json.dumps({**asked, "prompts": prompts}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    for name, value in (
        ("layers", 36),
        ("hidden", 2560),
        ("intermediate", 9728),
        ("heads", 32),
        ("cases", CASES),
        ("prompts", 1),
        ("tokens", LONG),
        ("least", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--task", choices=(EMBED, TOKEN_EMBED, PLAIN), default=EMBED)
    parser.add_argument("--name", default="cases.jsonl", help="of the file of cases")
    chosen = parser.parse_args()
    if not (chosen.folder / "tokenizer_config.json").exists():  # the last file that is written
        write(chosen.folder, chosen)
    write_cases(chosen.folder / chosen.name, chosen)

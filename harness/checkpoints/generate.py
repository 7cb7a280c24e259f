"""Generated checkpoints: small, context-sensitive, and byte-identical wherever they are made.

    tiny-qwen3   Qwen3ForCausalLM, LAST embedder and yes/no reranker, 4,096 positions
    tiny-llama   LlamaForCausalLM, likewise
    tiny-bert    BertModel, MEAN embedder, two segment types, 512 positions

`RECIPE` names the bytes: change it whenever any of them changes (the tests hold the hashes).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from harness.checkpoints import architectures
from harness.checkpoints.architectures import Architecture
from harness.checkpoints.cache import Say, silent
from harness.checkpoints.layout import write_json, write_sentence_transformers
from harness.checkpoints.reranker import THINKING_TEMPLATE, RerankerSpec
from harness.checkpoints.tensors import draw
from harness.checkpoints.tokenizer_json import (
    END_OF_TEXT,
    decoder_tokenizer,
    encoder_tokenizer,
)

RECIPE = "generated-2"
SEED = 20260
DECODER_POSITIONS, ENCODER_POSITIONS = 4096, 512
TINY_RERANKER = RerankerSpec(
    yes=258,
    no=257,
    yes_text="yes",
    no_text="no",
    why="the answer follows a newline, so it is spelt without a space, as in Qwen3-Reranker",
)
"""Ids of the generated tokenizer; the tests look them up in it."""
YES_NO_SPREAD = np.float32(0.125)


def tiny_qwen3(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-qwen3` into an empty folder."""
    _decoder(folder, architectures.qwen3(max_positions=DECODER_POSITIONS))


def tiny_llama(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-llama` into an empty folder."""
    _decoder(folder, architectures.llama(max_positions=DECODER_POSITIONS))


def tiny_bert(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-bert` into an empty folder."""
    architecture = architectures.bert(max_positions=ENCODER_POSITIONS)
    _model(folder, architecture, draw(architecture.tensors, SEED), encoder_tokenizer())
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": ENCODER_POSITIONS,
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        },
    )
    write_sentence_transformers(
        folder, pooling="MEAN", hidden_size=architectures.HIDDEN, max_length=ENCODER_POSITIONS
    )


GENERATORS: dict[str, Callable[[Path, Say], None]] = {
    "tiny-qwen3": tiny_qwen3,
    "tiny-llama": tiny_llama,
    "tiny-bert": tiny_bert,
}


def _decoder(folder: Path, architecture: Architecture) -> None:
    tensors = draw(architecture.tensors, SEED)
    rows = tensors["model.embed_tokens.weight"]
    # Unrelated rows give logits of +-11, whose sigmoid no longer moves with the prompt; an eighth
    # of the spread gives logits of about +-1. Scaling by a power of two is exact everywhere.
    rows[TINY_RERANKER.yes] = rows[TINY_RERANKER.no] + YES_NO_SPREAD * rows[TINY_RERANKER.yes]
    _model(folder, architecture, tensors, decoder_tokenizer())
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": DECODER_POSITIONS,
            "eos_token": END_OF_TEXT,
            "pad_token": END_OF_TEXT,
            "padding_side": "left",  # as Qwen3-Embedding, whose LAST token is then the last column
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )
    write_sentence_transformers(
        folder, pooling="LAST", hidden_size=architectures.HIDDEN, max_length=DECODER_POSITIONS
    )
    TINY_RERANKER.write(folder, THINKING_TEMPLATE)


def _model(
    folder: Path,
    architecture: Architecture,
    tensors: dict[str, NDArray[np.float32]],
    tokenizer: dict[str, Any],
) -> None:
    write_json(folder / "config.json", architecture.config)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "tokenizer.json", tokenizer)

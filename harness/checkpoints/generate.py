"""Generated checkpoints: small, context-sensitive, and byte-identical wherever they are made.

    tiny-qwen3       Qwen3ForCausalLM, LAST embedder and yes/no reranker, 4,096 positions
    tiny-llama       LlamaForCausalLM, likewise
    tiny-qwen2       Qwen2ForCausalLM, likewise, with biases
    tiny-mistral     MistralForCausalLM, likewise, a window of 40 tokens, an LM head of its own
    tiny-gemma3      Gemma3TextModel, bidirectional MEAN embedder, two kinds of layers
    tiny-bert        BertModel, MEAN embedder, two segment types, 512 positions
    tiny-roberta     XLMRobertaModel, CLS embedder, positions begin at 2
    tiny-modernbert  ModernBertModel, CLS embedder, two kinds of layers, 1,024 positions
    tiny-distilbert  DistilBertModel, MEAN embedder
    small-qwen3      tiny-qwen3 with half as many heads, twice as wide; small-bert likewise

`RECIPE` names the bytes by the code that makes them (the tests hold the hashes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from harness.checkpoints import decoders, encoders
from harness.checkpoints.architectures import HEAD_DIM, HEADS, HIDDEN, KV_HEADS, Architecture
from harness.checkpoints.cache import Say, silent
from harness.checkpoints.layout import write_json, write_sentence_transformers
from harness.checkpoints.recipe import recipe_of
from harness.checkpoints.reranker import THINKING_TEMPLATE, RerankerSpec
from harness.checkpoints.tensors import draw
from harness.checkpoints.tokenizer_json import (
    END_OF_TEXT,
    decoder_tokenizer,
    encoder_tokenizer,
    roberta_tokenizer,
)

RECIPE = recipe_of(
    *("architectures", "bpe", "decoders", "encoders", "generate", "layout", "reranker"),
    *("tensors", "tokenizer_json", "training_text"),
)
SEED = 20260
DECODER_POSITIONS, ENCODER_POSITIONS, LONG_ENCODER_POSITIONS = 4096, 512, 1024
TINY_RERANKER = RerankerSpec(
    yes=258,
    no=257,
    yes_text="yes",
    no_text="no",
    why="the answer follows a newline, so it is spelt without a space, as in Qwen3-Reranker",
)
"""Ids of the generated tokenizer; the tests look them up in it."""
YES_NO_SPREAD = np.float32(0.125)
HEAD_NORMS = ("q_norm.weight", "k_norm.weight")


def tiny_qwen3(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-qwen3` into an empty folder."""
    _reranker(folder, decoders.qwen3(max_positions=DECODER_POSITIONS))


def small_qwen3(folder: Path, _say: Say = silent) -> None:
    """Write `small-qwen3` into an empty folder: `tiny-qwen3` with fewer and wider heads.

    Some engines have kernels for no head narrower than 32.
    """
    tiny = decoders.qwen3(max_positions=DECODER_POSITIONS)
    tensors = {
        name: replace(spec, shape=(2 * HEAD_DIM,)) if name.endswith(HEAD_NORMS) else spec
        for name, spec in tiny.tensors.items()
    }
    wide = {"num_attention_heads": HEADS // 2, "num_key_value_heads": KV_HEADS // 2}
    config = tiny.config | wide | {"head_dim": 2 * HEAD_DIM}
    _reranker(folder, Architecture(config=config, tensors=tensors))


def tiny_llama(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-llama` into an empty folder."""
    _reranker(folder, decoders.llama(max_positions=DECODER_POSITIONS))


def tiny_qwen2(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-qwen2` into an empty folder."""
    _reranker(folder, decoders.qwen2(max_positions=DECODER_POSITIONS))


def tiny_mistral(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-mistral` into an empty folder."""
    _reranker(folder, decoders.mistral(max_positions=DECODER_POSITIONS), head="lm_head.weight")


def tiny_gemma3(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-gemma3` into an empty folder."""
    architecture = decoders.gemma3(max_positions=LONG_ENCODER_POSITIONS)
    _decoder(folder, architecture, draw(architecture.tensors, SEED), LONG_ENCODER_POSITIONS, "MEAN")


def tiny_bert(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-bert` into an empty folder."""
    architecture = encoders.bert(max_positions=ENCODER_POSITIONS)
    _encoder(folder, architecture, ENCODER_POSITIONS, "MEAN", segments=True)


def small_bert(folder: Path, _say: Say = silent) -> None:
    """Write `small-bert` into an empty folder: `tiny-bert` with fewer and wider heads."""
    tiny = encoders.bert(max_positions=ENCODER_POSITIONS)
    config = tiny.config | {"num_attention_heads": HEADS // 2}
    architecture = replace(tiny, config=config)
    _encoder(folder, architecture, ENCODER_POSITIONS, "MEAN", segments=True)


def tiny_distilbert(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-distilbert` into an empty folder."""
    architecture = encoders.distilbert(max_positions=ENCODER_POSITIONS)
    _encoder(folder, architecture, ENCODER_POSITIONS, "MEAN")


def tiny_modernbert(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-modernbert` into an empty folder."""
    architecture = encoders.modernbert(max_positions=LONG_ENCODER_POSITIONS)
    _encoder(folder, architecture, LONG_ENCODER_POSITIONS, "CLS")


def tiny_roberta(folder: Path, _say: Say = silent) -> None:
    """Write `tiny-roberta` into an empty folder."""
    architecture = encoders.roberta(max_positions=ENCODER_POSITIONS)
    _model(folder, architecture, draw(architecture.tensors, SEED), roberta_tokenizer())
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": ENCODER_POSITIONS,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "cls_token": "<s>",
            "sep_token": "</s>",
            "mask_token": "<mask>",
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )
    write_sentence_transformers(
        folder, pooling="CLS", hidden_size=HIDDEN, max_length=ENCODER_POSITIONS
    )


GENERATORS: dict[str, Callable[[Path, Say], None]] = {
    "tiny-qwen3": tiny_qwen3,
    "tiny-llama": tiny_llama,
    "tiny-qwen2": tiny_qwen2,
    "tiny-mistral": tiny_mistral,
    "tiny-gemma3": tiny_gemma3,
    "tiny-bert": tiny_bert,
    "tiny-roberta": tiny_roberta,
    "tiny-modernbert": tiny_modernbert,
    "tiny-distilbert": tiny_distilbert,
    "small-qwen3": small_qwen3,
    "small-bert": small_bert,
}


def _reranker(
    folder: Path, architecture: Architecture, *, head: str = "model.embed_tokens.weight"
) -> None:
    """A LAST embedder that is a yes/no reranker as well; `head` names the LM head's tensor."""
    tensors = draw(architecture.tensors, SEED)
    rows = tensors[head]
    # Unrelated rows give logits of +-11, whose sigmoid no longer moves with the prompt; an eighth
    # of the spread gives logits of about +-1. Scaling by a power of two is exact everywhere.
    rows[TINY_RERANKER.yes] = rows[TINY_RERANKER.no] + YES_NO_SPREAD * rows[TINY_RERANKER.yes]
    _decoder(folder, architecture, tensors, DECODER_POSITIONS, "LAST")
    TINY_RERANKER.write(folder, THINKING_TEMPLATE)


def _decoder(
    folder: Path,
    architecture: Architecture,
    tensors: dict[str, NDArray[np.float32]],
    positions: int,
    pooling: str,
) -> None:
    _model(folder, architecture, tensors, decoder_tokenizer())
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": positions,
            "eos_token": END_OF_TEXT,
            "pad_token": END_OF_TEXT,
            "padding_side": "left",  # as Qwen3-Embedding, whose LAST token is then the last column
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )
    write_sentence_transformers(folder, pooling=pooling, hidden_size=HIDDEN, max_length=positions)


def _encoder(
    folder: Path,
    architecture: Architecture,
    positions: int,
    pooling: str,
    *,
    segments: bool = False,
) -> None:
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    _model(folder, architecture, draw(architecture.tensors, SEED), encoder_tokenizer())
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": positions,
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
            "model_input_names": inputs if segments else inputs[::2],
        },
    )
    write_sentence_transformers(folder, pooling=pooling, hidden_size=HIDDEN, max_length=positions)


def _model(
    folder: Path,
    architecture: Architecture,
    tensors: dict[str, NDArray[np.float32]],
    tokenizer: dict[str, Any],
) -> None:
    write_json(folder / "config.json", architecture.config)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "tokenizer.json", tokenizer)

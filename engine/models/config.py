"""What a checkpoint's config.json says, in the engine's own terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from engine.errors import CheckpointError, UnsupportedModelError
from engine.jsonfile import read_json_object
from engine.models.fields import Fields
from engine.models.registry import ARCHITECTURES, model_class


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """What tells a layer from the next one, beside its weights."""

    window: int = 0
    """How far it sees, as `paged_attention` counts; 0: to either end."""
    rotary: int = 0
    """Which of the model's rotary tables turns its q and k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Sizes and choices that define a model; nothing about how it is run."""

    architecture: str
    family: Literal["decoder", "encoder"]
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_positions: int
    """Positions are 0 .. max_positions - 1."""
    norm_eps: float
    attention_scale: float
    """What q . k is multiplied with before the softmax."""
    causal: bool
    """Whether a row sees the rows before it only. A decoder that is not causal keeps no cache."""
    activation: str
    layer_kinds: tuple[LayerKind, ...]
    """One for each layer."""
    rope_thetas: tuple[float, ...] = ()
    """Bases of the rotary frequencies, one for each kind of layer that has its own; empty:
    positions are learned embeddings."""
    tie_word_embeddings: bool = True
    type_vocab_size: int = 0
    """Segment types of an encoder; 0: none."""
    padding_id: int | None = None
    """A token that no prompt may hold, because the family gives it no position of its own."""
    qkv_bias: bool = False
    output_bias: bool = False
    """Whether the query, key and value projections have biases, and that of attention's output."""
    norm_bias: bool = True
    feed_forward_bias: bool = True
    """The same of an encoder's norms and feed-forward products."""
    checkpoint_dtype: str | None = None
    """dtype the weights were saved for, as written (`float32`); None: not said."""

    def divided(self, count: int) -> ModelConfig:
        """The sizes of one of `count` tensor ranks, which each hold an equal part of a layer."""
        return replace(
            self,
            num_heads=self.num_heads // count,
            num_kv_heads=self.num_kv_heads // count,
            intermediate_size=self.intermediate_size // count,
        )


def read_model_config(path: str | Path) -> ModelConfig:
    """Read `config.json` of a model folder, as the family's class understands it.

    Raises:
        CheckpointError: the file is absent, not JSON, or lacks a value or has one of no use.
        UnsupportedModelError: architecture, rotary scaling or masking that the engine has not got.
    """
    file = Path(path) / "config.json"
    fields = Fields(values=read_json_object(file), file=file)
    if fields.architecture not in ARCHITECTURES:
        raise UnsupportedModelError(
            f"architectures={fields.values.get('architectures')!r} in {file}: expected one of "
            f"{sorted(ARCHITECTURES)}. Convert the checkpoint to one of these, or add the family "
            "under engine/models"
        )
    config: ModelConfig = model_class(fields.architecture).read_config(fields)
    for what, whole, part in (
        ("num_attention_heads / num_key_value_heads", config.num_heads, config.num_kv_heads),
        ("rotary head_dim / 2", config.head_dim, 2 if config.rope_thetas else 1),
    ):
        if whole % part:
            raise CheckpointError(f"{what} = {whole} / {part} in {file}: expected no remainder")
    return config

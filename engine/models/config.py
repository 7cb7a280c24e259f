"""What a checkpoint's config.json says, in the engine's own terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from engine.errors import CheckpointError, UnsupportedModelError
from engine.jsonfile import read_json_object
from engine.models.registry import ARCHITECTURES, DECODERS

DEFAULT_ROPE_THETA = 10_000.0
"""What a decoder config that names no theta means (arXiv:2104.09864, section 3.2.2)."""


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
    rope_thetas: tuple[float, ...]
    """Bases of the rotary frequencies, one for each kind of layer that has its own; empty:
    positions are learned embeddings."""
    layer_kinds: tuple[LayerKind, ...]
    """One for each layer."""
    causal: bool
    """Whether a row sees the rows before it only. A decoder that is not causal keeps no cache."""
    activation: str
    tie_word_embeddings: bool
    type_vocab_size: int
    """Segment types of an encoder; 0: none."""
    attention_bias: bool
    """Whether the query, key, value and output projections of a decoder have biases."""
    checkpoint_dtype: str | None
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
    """Read `config.json` of a model folder.

    Raises:
        CheckpointError: the file is absent, not JSON, or lacks a value or has one of no use.
        UnsupportedModelError: architecture, rotary scaling or masking that the engine has not got.
    """
    file = Path(path) / "config.json"
    fields = _Fields(values=read_json_object(file), file=file)
    named = fields.values.get("architectures") or [None]
    architecture = named[0]
    if architecture not in ARCHITECTURES:
        raise UnsupportedModelError(
            f"architectures={named!r} in {file}: expected one of {sorted(ARCHITECTURES)}. Convert "
            "the checkpoint to one of these, or add the family under engine/models"
        )
    config = _decoder(fields) if architecture in DECODERS else _encoder(fields)
    for what, whole, part in (
        ("num_attention_heads / num_key_value_heads", config.num_heads, config.num_kv_heads),
        ("rotary head_dim / 2", config.head_dim, 2 if config.rope_thetas else 1),
    ):
        if whole % part:
            raise CheckpointError(f"{what} = {whole} / {part} in {file}: expected no remainder")
    return config


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    values: Mapping[str, Any]
    file: Path

    def size(self, name: str, default: int | None = None) -> int:
        """A positive integer."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise CheckpointError(
                f"{name}={value!r} in {self.file}: expected a positive integer. Repair the file or "
                "download it again"
            )
        return value

    def number(self, name: str) -> float:
        """A positive number."""
        value = self.values.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise CheckpointError(f"{name}={value!r} in {self.file}: expected a positive number")
        return float(value)

    def refuse_unless(self, name: str, *, accepted: tuple[object, ...]) -> None:
        """Refuse a choice that the engine would otherwise silently ignore; absent is accepted."""
        value = self.values.get(name)
        if value is not None and value not in accepted:
            raise UnsupportedModelError(
                f"{name}={value!r} in {self.file}: the engine implements only {list(accepted)}"
            )


def _decoder(fields: _Fields) -> ModelConfig:
    fields.refuse_unless("hidden_act", accepted=("silu",))
    fields.refuse_unless("use_sliding_window", accepted=(False,))
    fields.refuse_unless("is_causal", accepted=(True,))
    fields.refuse_unless("mlp_bias", accepted=(False,))
    kinds = set(fields.values.get("layer_types") or ()) - {"full_attention"}
    if kinds:
        raise UnsupportedModelError(
            f"layer_types with {sorted(kinds)} in {fields.file}: expected 'full_attention' only"
        )
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    return ModelConfig(
        architecture=fields.values["architectures"][0],
        family="decoder",
        hidden_size=hidden,
        num_layers=fields.size("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=fields.size("num_key_value_heads", heads),
        head_dim=fields.size("head_dim", hidden // heads),
        intermediate_size=fields.size("intermediate_size"),
        vocab_size=fields.size("vocab_size"),
        max_positions=fields.size("max_position_embeddings"),
        norm_eps=fields.number("rms_norm_eps"),
        rope_thetas=(_rope_theta(fields),),
        layer_kinds=(LayerKind(),) * fields.size("num_hidden_layers"),
        causal=True,
        activation="silu",
        tie_word_embeddings=bool(fields.values.get("tie_word_embeddings", False)),
        type_vocab_size=0,
        attention_bias=bool(fields.values.get("attention_bias", False)),
        checkpoint_dtype=_dtype(fields),
    )


def _encoder(fields: _Fields) -> ModelConfig:
    fields.refuse_unless("position_embedding_type", accepted=("absolute",))
    fields.refuse_unless("is_decoder", accepted=(False,))
    fields.refuse_unless(
        "hidden_act",
        accepted=(
            "gelu",
            "gelu_new",
            "gelu_pytorch_tanh",
            "relu",
            "silu",
        ),
    )
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    if hidden % heads:
        raise CheckpointError(
            f"hidden_size / num_attention_heads = {hidden} / {heads} in {fields.file}: expected no "
            "remainder"
        )
    return ModelConfig(
        architecture=fields.values["architectures"][0],
        family="encoder",
        hidden_size=hidden,
        num_layers=fields.size("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=hidden // heads,
        intermediate_size=fields.size("intermediate_size"),
        vocab_size=fields.size("vocab_size"),
        max_positions=fields.size("max_position_embeddings"),
        norm_eps=fields.number("layer_norm_eps"),
        rope_thetas=(),
        layer_kinds=(LayerKind(),) * fields.size("num_hidden_layers"),
        causal=False,
        activation=fields.values.get("hidden_act") or "gelu",
        tie_word_embeddings=bool(fields.values.get("tie_word_embeddings", True)),
        type_vocab_size=fields.size("type_vocab_size"),
        attention_bias=True,
        checkpoint_dtype=_dtype(fields),
    )


def _dtype(fields: _Fields) -> str | None:
    """`dtype` since transformers 5, `torch_dtype` before."""
    dtype = fields.values.get("dtype") or fields.values.get("torch_dtype")
    return None if dtype is None else str(dtype)


def _rope_theta(fields: _Fields) -> float:
    """Theta from `rope_parameters` (transformers 5) or the top level; scaled kinds are refused."""
    theta: object = fields.values.get("rope_theta")
    for name in ("rope_scaling", "rope_parameters"):
        rope = fields.values.get(name)
        if rope is None:
            continue
        if not isinstance(rope, dict):
            raise CheckpointError(f"{name}={rope!r} in {fields.file}: expected an object or null")
        kind = rope.get("rope_type", rope.get("type", "default"))
        partial = rope.get("partial_rotary_factor", 1.0)
        nested = any(isinstance(value, dict) for value in rope.values())
        if kind != "default" or partial != 1.0 or nested:
            raise UnsupportedModelError(
                f"{name}={rope!r} in {fields.file}: the engine implements only rope_type 'default' "
                "over the whole head. Remove the scaling if prompts stay within the trained length"
            )
        theta = rope.get("rope_theta", theta)
    fields.refuse_unless("partial_rotary_factor", accepted=(1.0,))
    theta = DEFAULT_ROPE_THETA if theta is None else theta
    if not isinstance(theta, int | float) or theta <= 0:
        raise CheckpointError(f"rope_theta={theta!r} in {fields.file}: expected a positive number")
    return float(theta)

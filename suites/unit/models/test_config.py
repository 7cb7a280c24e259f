"""What config.json may say, where, and what is refused instead of ignored."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CheckpointError, UnsupportedModelError
from engine.models import Model, read_model_config
from engine.models.registry import ARCHITECTURES, DECODERS, ENCODERS
from harness.checkpoints.catalogue import path_of


def write(folder: Path, name: str = "tiny-qwen3", *, drop: str = "", **changes: Any) -> Path:
    """A folder with the config of `name`, changed."""
    config = json.loads((path_of(name) / "config.json").read_text()) | changes
    config.pop(drop, None)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_decoders_sizes_are_read() -> None:
    config = read_model_config(path_of("tiny-qwen3"))
    raw = json.loads((path_of("tiny-qwen3") / "config.json").read_text())
    assert (config.family, config.causal, config.type_vocab_size) == ("decoder", True, 0)
    for ours, theirs in (
        ("hidden_size", "hidden_size"),
        ("num_layers", "num_hidden_layers"),
        ("num_heads", "num_attention_heads"),
        ("num_kv_heads", "num_key_value_heads"),
        ("head_dim", "head_dim"),
        ("intermediate_size", "intermediate_size"),
        ("vocab_size", "vocab_size"),
        ("max_positions", "max_position_embeddings"),
        ("norm_eps", "rms_norm_eps"),
        ("tie_word_embeddings", "tie_word_embeddings"),
    ):
        assert getattr(config, ours) == raw[theirs], ours
    assert config.checkpoint_dtype == "float32"


def test_an_encoders_sizes_are_read() -> None:
    config = read_model_config(path_of("tiny-bert"))
    assert (config.family, config.causal, config.rope_thetas) == ("encoder", False, ())
    assert (config.type_vocab_size, config.num_kv_heads) == (2, config.num_heads)
    assert config.norm_eps == 1e-12


def test_theta_is_found_in_either_place(tmp_path: Path) -> None:
    assert read_model_config(write(tmp_path, rope_theta=5.0)).rope_thetas == (5.0,)
    inner = {"rope_type": "default", "rope_theta": 7.0}
    both = write(tmp_path, rope_theta=5.0, rope_parameters=inner)
    assert read_model_config(both).rope_thetas == (7.0,)
    assert read_model_config(write(tmp_path, drop="rope_theta")).rope_thetas == (10_000.0,)


@pytest.mark.parametrize(
    "change",
    [
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}},
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
        {"partial_rotary_factor": 0.25},
        {"use_sliding_window": True},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"hidden_act": "relu"},
        {"mlp_bias": True},
        {"is_causal": False},
    ],
    ids=lambda change: json.dumps(change),
)
def test_what_the_engine_would_get_wrong_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    name = next(iter(change))
    with pytest.raises(UnsupportedModelError, match=name):
        read_model_config(write(tmp_path, **change))


@pytest.mark.parametrize(
    "change", [{"position_embedding_type": "relative_key"}, {"is_decoder": True}]
)
def test_encoder_variants_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match=next(iter(change))):
        read_model_config(write(tmp_path, "tiny-bert", **change))


@pytest.mark.parametrize("architectures", [["T5Model"], [], None])
def test_an_unknown_architecture_lists_the_known_ones(tmp_path: Path, architectures: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=r"BertModel.*Qwen3ForCausalLM"):
        read_model_config(write(tmp_path, architectures=architectures))


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": None},
        {"num_hidden_layers": 0},
        {"vocab_size": "many"},
        {"rms_norm_eps": -1.0},
        {"rope_theta": 0},
        {"rope_scaling": "yarn"},
        {"num_key_value_heads": 3},
        {"head_dim": 15},
    ],
    ids=lambda change: json.dumps(change),
)
def test_a_value_of_no_use_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match=next(iter(change))):
        read_model_config(write(tmp_path, **change))


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_model_config(tmp_path)


def test_no_file_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file"):
        read_model_config(tmp_path / "nowhere")


def test_every_architecture_resolves_to_a_model() -> None:
    for target in ARCHITECTURES.values():
        module, name = target.split(":")
        assert issubclass(getattr(import_module(module), name), Model)
    assert not set(DECODERS) & set(ENCODERS)

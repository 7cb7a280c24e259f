"""What config.json may say, where, and what is refused instead of ignored.

Passes wrongly if an option that the engine has not got were read past. Ruled out by
suites/meta/test_suites_can_fail.py: `options-are-ignored`.
"""

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
        {"layer_types": ["full_attention", "chunked_attention"]},
        {"partial_rotary_factor": 0.25},
        {"layer_types": ["sliding_attention"] * 4},
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


def windows(folder: Path) -> list[tuple[int, int]]:
    return [(kind.window, kind.rotary) for kind in read_model_config(folder).layer_kinds]


def test_windows_are_read_for_each_layer(tmp_path: Path) -> None:
    upper = {"use_sliding_window": True, "sliding_window": 9}
    for name in ("tiny-qwen2", "tiny-qwen3"):
        assert windows(path_of(name)) == [(0, 0)] * 4
        assert windows(write(tmp_path, name, **upper, max_window_layers=3))[2:] == [(0, 0), (9, 0)]
        kinds = ["full_attention", "sliding_attention"] * 2
        assert windows(write(tmp_path, name, **upper, layer_types=kinds)) == [(0, 0), (9, 0)] * 2
    assert windows(path_of("tiny-mistral")) == [(40, 0)] * 4
    assert windows(write(tmp_path, "tiny-mistral", sliding_window=None)) == [(0, 0)] * 4
    assert windows(path_of("tiny-gemma3")) == [(32, 1), (0, 0)] * 2
    pattern = write(tmp_path, "tiny-gemma3", drop="layer_types", sliding_window_pattern=3)
    assert windows(pattern) == [(32, 1), (32, 1), (0, 0), (32, 1)]
    assert windows(path_of("tiny-modernbert")) == [(0, 0), (32, 1), (32, 1), (0, 0)]


@pytest.mark.parametrize("name", ["tiny-gemma3", "tiny-modernbert"])
def test_two_rotary_bases_are_found_in_either_place(tmp_path: Path, name: str) -> None:
    usual = read_model_config(path_of(name)).rope_thetas
    assert usual[1] == 10_000.0 < usual[0]
    nested = {
        "full_attention": {"rope_type": "default", "rope_theta": 5.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 7.0},
    }
    assert read_model_config(write(tmp_path, name, rope_parameters=nested)).rope_thetas == (5, 7)
    nested["sliding_attention"]["rope_type"] = "linear"
    with pytest.raises(UnsupportedModelError, match=r"rope_parameters\.sliding_attention"):
        read_model_config(write(tmp_path, name, rope_parameters=nested))


def test_what_families_differ_in_is_read(tmp_path: Path) -> None:
    qwen2, gemma3 = (read_model_config(path_of(name)) for name in ("tiny-qwen2", "tiny-gemma3"))
    assert (qwen2.qkv_bias, qwen2.output_bias) == (True, False)
    assert (gemma3.family, gemma3.causal, gemma3.attention_scale) == ("decoder", False, 20**-0.5)
    causal = write(tmp_path, "tiny-gemma3", use_bidirectional_attention=False)
    assert read_model_config(causal).causal
    roberta = read_model_config(path_of("tiny-roberta"))
    assert (roberta.padding_id, roberta.max_positions, roberta.type_vocab_size) == (1, 512, 1)
    assert read_model_config(path_of("tiny-distilbert")).type_vocab_size == 0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tiny-gemma3", {"attn_logit_softcapping": 50.0}),
        ("tiny-gemma3", {"final_logit_softcapping": 30.0}),
        ("tiny-gemma3", {"hidden_activation": "silu"}),
        ("tiny-gemma3", {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
        ("tiny-mistral", {"layer_types": ["full_attention"] * 4}),
        ("tiny-llama", {"use_sliding_window": True}),
        ("tiny-modernbert", {"hidden_activation": "mish"}),
        ("tiny-distilbert", {"activation": "mish"}),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value),
)
def test_family_options_that_are_not_implemented_are_refused(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    with pytest.raises(
        UnsupportedModelError, match=f"{next(iter(change))}.*engine implements only"
    ):
        read_model_config(write(tmp_path, name, **change))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tiny-roberta", {"pad_token_id": -1}),
        ("tiny-mistral", {"sliding_window": 0}),
        ("tiny-gemma3", {"layer_types": ["full_attention"]}),
        ("tiny-qwen2", {"use_sliding_window": "yes"}),
        ("tiny-modernbert", {"local_attention": None}),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value),
)
def test_family_values_of_no_use_are_named(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    with pytest.raises(CheckpointError, match=next(iter(change))):
        read_model_config(write(tmp_path, name, **change))


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

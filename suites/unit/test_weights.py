"""Damaged, partial and foreign checkpoints are refused, naming file and tensor.

Passes wrongly if a refusal came from reading a tensor and not from comparing names and shapes.
Ruled out by suites/meta/test_suites_can_fail.py: `names-and-shapes-are-not-compared`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import CheckpointError, ConfigurationError
from engine.models import load_model
from engine.weights import Checkpoint
from harness.checkpoints.catalogue import path_of

WEIGHTS = "model.safetensors"
LAYER = "model.layers.2.mlp.up_proj.weight"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "model"
    shutil.copytree(path_of("tiny-qwen3"), copy)
    copy.chmod(0o755)
    return copy


def change(folder: Path, **tensors: torch.Tensor | None) -> None:
    """Replace (or with None remove) tensors of the single weights file."""
    held = load_file(folder / WEIGHTS)
    held.update({name: t for name, t in tensors.items() if t is not None})
    for name in [name for name, tensor in tensors.items() if tensor is None]:
        del held[name]
    save_file(held, folder / WEIGHTS)


def shard(folder: Path, files: int = 3) -> dict[str, str]:
    """Split the single file into shards with an index; returns the index's map."""
    held = load_file(folder / WEIGHTS)
    names = sorted(held)
    weight_map = {name: f"model-{place % files}.safetensors" for place, name in enumerate(names)}
    for file in set(weight_map.values()):
        save_file({n: held[n] for n in names if weight_map[n] == file}, folder / file)
    (folder / WEIGHTS).unlink()
    write_index(folder, weight_map)
    return weight_map


def write_index(folder: Path, weight_map: dict[str, Any]) -> None:
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_shards_are_the_same_model(folder: Path) -> None:
    whole = load_model(folder).state_dict()
    shard(folder)
    parts = load_model(folder).state_dict()
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_backbone_names_without_their_prefix_are_the_same_model(folder: Path) -> None:
    whole = load_model(folder).state_dict()
    held = load_file(folder / WEIGHTS)
    save_file({name.removeprefix("model."): t for name, t in held.items()}, folder / WEIGHTS)
    bare = load_model(folder).state_dict()
    assert all(torch.equal(whole[name], bare[name]) for name in whole)


def test_a_missing_and_an_unexpected_tensor_are_both_named(folder: Path) -> None:
    change(folder, **{LAYER: None, "model.layers.9.surprise": torch.ones(2)})
    with pytest.raises(CheckpointError, match=r"missing.*up_proj.*unexpected.*layers.9.surprise"):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        (LAYER, None, rf"missing tensors \['{LAYER}'\]"),
        ("odd", torch.ones(2), r"tensors \['odd'\]"),
    ],
)
def test_either_alone_is_refused(
    folder: Path, name: str, tensor: torch.Tensor | None, message: str
) -> None:
    change(folder, **{name: tensor})
    with pytest.raises(CheckpointError, match=message):
        load_model(folder)


def test_a_stage_that_does_not_hold_the_tensor_still_refuses(folder: Path) -> None:
    change(folder, **{LAYER: None})
    with pytest.raises(CheckpointError, match=LAYER):
        load_model(folder, layers=range(1))


def test_a_wrong_shape_names_file_tensor_and_both_shapes(folder: Path) -> None:
    change(folder, **{LAYER: torch.ones(192, 63)})
    pattern = rf"{LAYER} in {WEIGHTS} is \[192, 63\], not \[192, 64\]"
    with pytest.raises(CheckpointError, match=pattern):
        load_model(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_not_finite_is_counted(folder: Path, value: float) -> None:
    poisoned = load_file(folder / WEIGHTS)[LAYER]
    poisoned[3, 4] = value
    change(folder, **{LAYER: poisoned})
    with pytest.raises(CheckpointError, match=f"{LAYER} in .*{WEIGHTS} holds 1 values"):
        load_model(folder)


def test_a_weight_that_overflows_the_chosen_dtype_is_refused(folder: Path) -> None:
    large = load_file(folder / WEIGHTS)[LAYER]
    large[0, 0] = 1e6
    change(folder, **{LAYER: large})
    load_model(folder)
    with pytest.raises(CheckpointError, match=r"infinite as torch.float16.*wider range"):
        load_model(folder, dtype="float16")


def test_integer_weights_are_refused(folder: Path) -> None:
    change(folder, **{LAYER: torch.ones(192, 64, dtype=torch.int8)})
    with pytest.raises(CheckpointError, match=r"torch.int8: expected floating-point"):
        load_model(folder)


@pytest.mark.parametrize("kept", [0, 5, 1000, -10])
def test_a_truncated_file_is_refused(folder: Path, kept: int) -> None:
    file = folder / WEIGHTS
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[:kept])
    with pytest.raises(CheckpointError, match=rf"cannot read .*{WEIGHTS}.*download it again"):
        load_model(folder)


def test_other_formats_are_named(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"got \['pytorch_model.bin'\]"):
        load_model(folder)


def test_an_absent_shard_is_named(folder: Path) -> None:
    shard(folder)
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model-1.safetensors is named by .*absent"):
        load_model(folder)


def test_an_index_that_lies_about_a_shard_is_refused(folder: Path) -> None:
    weight_map = shard(folder)
    weight_map["invented.weight"] = "model-0.safetensors"
    write_index(folder, weight_map)
    with pytest.raises(CheckpointError, match=r"missing \['invented.weight'\]"):
        load_model(folder)


@pytest.mark.parametrize("weight_map", [{}, {"a": "../model-0.safetensors"}])
def test_an_index_of_no_use_is_refused(folder: Path, weight_map: dict[str, str]) -> None:
    shard(folder)
    write_index(folder, weight_map)
    with pytest.raises(CheckpointError, match=r"index\.json"):
        load_model(folder)


def test_names_a_family_ignores_are_not_unexpected(tmp_path: Path) -> None:
    folder = tmp_path / "bert"
    shutil.copytree(path_of("tiny-bert"), folder)
    change(folder, **{"embeddings.position_ids": torch.arange(512)[None]})
    load_model(folder)
    held = load_file(folder / WEIGHTS)
    save_file({n: t for n, t in held.items() if not n.startswith("pooler.")}, folder / WEIGHTS)
    load_model(folder)


def test_weights_do_not_change_with_the_file(folder: Path) -> None:
    model = load_model(folder)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with (folder / WEIGHTS).open("r+b") as file:
        file.seek(-4096, 2)
        file.write(b"\0" * 4096)
    assert all(torch.equal(before[name], t) for name, t in model.state_dict().items())


def test_lm_head_rows_are_the_embeddings_when_tied(folder: Path) -> None:
    embedding = load_file(folder / WEIGHTS)["model.embed_tokens.weight"]
    last_stage = load_model(folder, layers=range(2, 4))
    assert torch.equal(last_stage.lm_head_rows([7, 3]), embedding[[7, 3]])


def test_lm_head_rows_are_its_own_when_not_tied(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["tie_word_embeddings"] = False
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match="expected an LM head"):
        load_model(folder).lm_head_rows([0])
    head = torch.randn(load_file(folder / WEIGHTS)["model.embed_tokens.weight"].shape)
    change(folder, **{"lm_head.weight": head})
    assert torch.equal(load_model(folder).lm_head_rows([7, 3]), head[[7, 3]])


def test_lm_head_rows_outside_the_vocabulary_are_refused(folder: Path) -> None:
    model = load_model(folder)
    for ids in ([-1], [model.config.vocab_size]):
        with pytest.raises(ConfigurationError, match=r"expected ids in 0\.\."):
            model.lm_head_rows(ids)
    with pytest.raises(ConfigurationError, match="BertModel without one"):
        load_model(path_of("tiny-bert")).lm_head_rows([0])


def test_nothing_is_held_open_or_in_memory(folder: Path) -> None:
    checkpoint = Checkpoint(folder)
    assert LAYER in checkpoint
    assert "nonsense" not in checkpoint
    assert not any(isinstance(value, torch.Tensor) for value in vars(checkpoint).values())

"""A damaged or foreign checkpoint is refused at start-up, by the name of what is wrong with it.

Passes wrongly if a damaged folder was refused for something that an intact one has as well, or
damage was never looked for. Ruled out by `test_the_folder_that_is_damaged_here_runs_as_it_was` and
suites/meta/test_suites_can_fail.py: `unexpected-tensors-are-let-through`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.config import EngineConfig, ParallelConfig
from engine.engine import Engine
from engine.errors import CheckpointError, EngineError, UnsupportedModelError
from harness.checkpoints.catalogue import path_of
from suites.contract import damage

NAME = "layers.1.mlp.up_proj.weight"


def drop(tensors: dict[str, torch.Tensor]) -> None:
    del tensors[full_name(tensors)]


def add(tensors: dict[str, torch.Tensor]) -> None:
    tensors[full_name(tensors).replace("layers.1.", "layers.77.")] = torch.zeros(2)


def reshape(tensors: dict[str, torch.Tensor]) -> None:
    name = full_name(tensors)
    tensors[name] = tensors[name][:-1].clone()


def quantise(tensors: dict[str, torch.Tensor]) -> None:
    name = full_name(tensors)
    tensors[name] = tensors[name].to(torch.int8)


def overflow(tensors: dict[str, torch.Tensor]) -> None:
    tensors[full_name(tensors)].view(-1)[0] = float("inf")


def full_name(tensors: dict[str, torch.Tensor]) -> str:
    """The name under which this checkpoint holds NAME."""
    return next(name for name in tensors if name.endswith(NAME))


def poison(folder: Path) -> None:
    tensors: list[str] = []
    damage.edit_weights(folder, lambda found: tensors.append(full_name(found)))
    damage.poison_weights(folder, tensors[0])


def edited(edit: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    return lambda folder: damage.edit_weights(folder, edit)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return damage.copy_of(path_of("tiny-llama"), tmp_path / "model")


def start(folder: Path) -> Engine:
    return Engine(EngineConfig(model=folder, max_model_len=64))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (edited(drop), rf"missing tensors \['\S*{NAME}'\]"),
        (edited(add), r"unexpected tensors \['\S*layers\.77\.mlp\.up_proj\.weight'\]"),
        (edited(reshape), rf"{NAME} in model\.safetensors is \[\d+, \d+\], not \[\d+, \d+\]"),
        (edited(quantise), rf"{NAME} in \S+ is torch\.int8: expected floating-point"),
        (edited(overflow), rf"{NAME} in \S+ holds 1 values of \d+ that are NaN or infinite"),
        (poison, rf"{NAME} in \S+ holds 1 values of \d+ that are NaN or infinite"),
        (damage.truncate_weights, r"cannot read \S+model\.safetensors as safetensors: .*truncated"),
        (
            lambda folder: damage.truncate_weights(folder, left=0.0),
            r"cannot read \S+model\.safetensors as safetensors: .*download it again",
        ),
        (
            lambda folder: (folder / damage.WEIGHTS).unlink(),
            r"expected model\.safetensors or model\.safetensors\.index\.json in \S+, got neither",
        ),
        (
            lambda folder: (folder / "config.json").unlink(),
            r"expected \S+config\.json, got no such",
        ),
        (
            lambda folder: (folder / "config.json").write_text("{"),
            r"cannot read \S+config\.json: .*Download it again",
        ),
        (
            lambda folder: damage.edit_config(folder, num_hidden_layers=0),
            r"num_hidden_layers=0 in \S+config\.json: expected a positive integer",
        ),
        (
            lambda folder: damage.edit_config(folder, num_hidden_layers=99),
            r"missing tensors \[.*check `architectures` and `num_hidden_layers`",
        ),
    ],
)
def test_damage_is_named(folder: Path, spoil: Callable[[Path], None], told: str) -> None:
    spoil(folder)
    with pytest.raises(CheckpointError, match=f"(?s){told}"):
        start(folder)


def test_the_folder_that_is_damaged_here_runs_as_it_was(folder: Path) -> None:
    with start(folder) as engine:
        assert engine.supported_tasks


@pytest.mark.parametrize("architectures", [["GPT2LMHeadModel"], [], None])
def test_an_unknown_architecture_is_told_the_known_ones(
    folder: Path, architectures: list[str] | None
) -> None:
    damage.edit_config(folder, architectures=architectures)
    with pytest.raises(
        UnsupportedModelError,
        match=r"architectures=.* in \S+config\.json: expected one of \['.*'BertModel', .*Qwen3",
    ) as caught:
        start(folder)
    assert f"architectures={architectures!r} in" in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"expected \S+absent/config\.json, got no such file"):
        start(tmp_path / "absent")


def test_a_rank_process_tells_the_same(folder: Path) -> None:
    """An error of start-up keeps its kind and words when another process found it."""
    poison(folder)
    config = EngineConfig(
        model=folder,
        max_model_len=64,
        parallel=ParallelConfig(pipeline_parallel_size=2, executor="processes"),
    )
    with pytest.raises(EngineError) as caught:
        Engine(config)
    assert type(caught.value) is CheckpointError
    assert f"{NAME} in" in str(caught.value)
    assert "Traceback" not in str(caught.value)

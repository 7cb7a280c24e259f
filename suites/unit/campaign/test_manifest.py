"""What a run says of its checkpoints, for every family that there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.campaign.manifest import checkpoint_info
from harness.checkpoints.architectures import LAYERS
from harness.checkpoints.catalogue import path_of
from harness.checkpoints.errors import CheckpointDamaged
from harness.checkpoints.generate import GENERATORS


@pytest.mark.parametrize("name", GENERATORS)
def test_every_family_tells_its_layers(name: str) -> None:
    info = checkpoint_info(name)
    assert info.num_layers == LAYERS
    assert info.num_parameters > 0


def test_a_config_without_layers_is_named(tmp_path: Path) -> None:
    for source in path_of("tiny-bert").iterdir():
        if source.is_file():
            (tmp_path / source.name).write_bytes(source.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    del config["num_hidden_layers"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointDamaged, match=r"none of .*num_hidden_layers"):
        checkpoint_info(str(tmp_path))

"""What a run says of its checkpoints, for every family that there is.

Passes wrongly if the checkout that is looked at never differed from its commit. Ruled out by
suites/meta/test_suites_can_fail.py: `changed-files-are-not-told`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.campaign.manifest import checkpoint_info, commit
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


def test_a_run_knows_its_commit_and_whether_files_differ(tmp_path: Path) -> None:
    assert commit(tmp_path) == "", "no checkout"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("one")
    for command in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "one"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert commit(tmp_path) == head.stdout[:12]
    (tmp_path / "file").write_text("two")
    assert commit(tmp_path) == head.stdout[:12] + "+"

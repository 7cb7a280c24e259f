"""Ways to damage a checkpoint folder, each as it happens to people."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from harness.checkpoints.cache import MANIFEST, sha256_of

WEIGHTS = "model.safetensors"


def copy_of(folder: Path, to: Path) -> Path:
    """A copy that may be damaged; the original is a cache's."""
    return Path(shutil.copytree(folder, to))


def edit_weights(folder: Path, edit: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Read every tensor, let `edit` change the table, write it back."""
    tensors = load_file(folder / WEIGHTS)
    edit(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def edit_config(folder: Path, **values: Any) -> None:
    """Set keys of config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def truncate_weights(folder: Path, left: float = 0.5) -> None:
    """Keep the first part of the weights' file, as a broken download does."""
    blob = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(blob[: int(left * len(blob))])


def poison_weights(folder: Path, name: str) -> None:
    """Put one NaN into the tensor `name`."""

    def poison(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name].view(-1)[3] = float("nan")

    edit_weights(folder, poison)


def vouch(folder: Path) -> None:
    """Make a cache's manifest agree with the damage: the cache itself cannot notice any more."""
    document = json.loads((folder / MANIFEST).read_text())
    document["files"] = {name: sha256_of(folder / name) for name in document["files"]}
    (folder / MANIFEST).write_text(json.dumps(document))

"""Any model folder as a checkpoint: what the catalogue would say, read from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from harness.checkpoints.checkpoint import Checkpoint
from harness.checkpoints.errors import CheckpointDamaged
from harness.checkpoints.reranker import SPEC_FILE, read_spec

_MODES: tuple[tuple[str, Literal["LAST", "MEAN", "CLS"]], ...] = (
    ("pooling_mode_lasttoken", "LAST"),
    ("pooling_mode_mean_tokens", "MEAN"),
    ("pooling_mode_cls_token", "CLS"),
)


def is_folder(name: str) -> bool:
    """Whether a name of a checkpoint is really the path of a model folder."""
    return (Path(name) / "config.json").is_file()


def checkpoint_of(folder: Path) -> Checkpoint:
    """Raises CheckpointDamaged for a folder that does not say what has to be known."""
    config = _read(folder / "config.json")
    architectures = config.get("architectures") or [""]
    decoder = str(architectures[0]).endswith("ForCausalLM")
    modes = _read(folder / "1_Pooling" / "config.json") if (folder / "1_Pooling").is_dir() else {}
    pooling = next((value for key, value in _MODES if modes.get(key)), None)
    reranker = read_spec(folder) if (folder / SPEC_FILE).is_file() else None
    try:
        longest = int(config["max_position_embeddings"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointDamaged(
            f"{folder}/config.json has no max_position_embeddings: which prompts fit?"
        ) from error
    return Checkpoint(
        name=str(folder),
        kind="decoder" if decoder else "encoder",
        origin="folder",
        pooling=pooling or ("LAST" if decoder else "MEAN"),
        tasks=("embed", "token_embed", *(("classify",) if reranker is not None else ())),
        max_length=longest,
        recipe="",
        reranker=reranker,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointDamaged(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise CheckpointDamaged(f"{path}: expected a JSON object, got {type(found).__name__}")
    return found

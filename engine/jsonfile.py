"""JSON files of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError


def read_json_object(file: Path) -> dict[str, Any]:
    """The object in a JSON file of a checkpoint. Raises CheckpointError naming the file."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"expected {file}, got no such file. Give the folder of a Hugging Face checkpoint"
        ) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read {file}: {error}. Download it again") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"expected an object in {file}, got {type(value).__name__}")
    return value

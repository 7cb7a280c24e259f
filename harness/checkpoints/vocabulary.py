"""How many token ids a checkpoint knows."""

from __future__ import annotations

import json
from pathlib import Path


def vocabulary_of(folder: Path) -> int:
    """Rows of the embedding, from `config.json`."""
    return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"])

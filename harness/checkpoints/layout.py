"""Files around the weights: the Hugging Face and sentence-transformers folder layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_POOLING_MODES = {
    "CLS": "pooling_mode_cls_token",
    "MEAN": "pooling_mode_mean_tokens",
    "LAST": "pooling_mode_lasttoken",
}


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write one JSON file, readable and with the keys in the order given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_sentence_transformers(
    folder: Path, *, pooling: str, hidden_size: int, max_length: int
) -> None:
    """Declare the folder an embedder: transformer, then `pooling`, then L2 normalisation."""
    modules = (
        ("", "sentence_transformers.models.Transformer"),
        ("1_Pooling", "sentence_transformers.models.Pooling"),
        ("2_Normalize", "sentence_transformers.models.Normalize"),
    )
    listing = [
        {"idx": place, "name": str(place), "path": path, "type": kind}
        for place, (path, kind) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listing, indent=1) + "\n", encoding="utf-8")
    write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": max_length, "do_lower_case": False},
    )
    modes = {key: name == pooling for name, key in _POOLING_MODES.items()}
    if not any(modes.values()):
        raise ValueError(
            f"expected pooling one of {sorted(_POOLING_MODES)}, got pooling={pooling!r}"
        )
    write_json(
        folder / "1_Pooling" / "config.json", {"word_embedding_dimension": hidden_size, **modes}
    )
    write_json(folder / "2_Normalize" / "config.json", {})

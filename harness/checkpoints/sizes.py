"""Sizes that a checkpoint's config.json tells, whatever its family calls them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NARROW = {"sliding_attention"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What a case, a report or a judge has to know of a model."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    reach: int | None
    """Tokens before a prompt's last one that must show in it; None: all of them."""


def sizes_of(folder: Path) -> Sizes:
    """Read `folder/config.json`.

    Raises OSError, ValueError (not JSON) or KeyError (a size is missing under every known name).
    """
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    layers = _size(config, "num_hidden_layers", "n_layers", "n_layer")
    return Sizes(
        vocab_size=_size(config, "vocab_size"),
        hidden_size=_size(config, "hidden_size", "dim", "n_embd"),
        num_layers=layers,
        reach=_reach(config, layers),
    )


def _size(config: dict[str, Any], *names: str) -> int:
    """The first is nearly everybody's, the second DistilBERT's, the third GPT-2's."""
    for name in names:
        if name in config:
            return int(config[name])
    raise KeyError(f"config.json has none of {', '.join(names)}")


def _reach(config: dict[str, Any], layers: int) -> int | None:
    """Where every layer has a window, a layer carries what it sees at most `window - 1` tokens on,
    so that the first token of a long prompt cannot show in the last at all. Half the layers' worth
    is asked for: there are many ways from there to the last token, and from the far edge only one.
    """
    window, kinds = config.get("sliding_window"), config.get("layer_types")
    everywhere = config.get("model_type") == "mistral" if kinds is None else set(kinds) == _NARROW
    return (int(window) - 1) * max(1, layers // 2) if window and everywhere else None

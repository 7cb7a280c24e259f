"""How far back a model can be asked to see, from its config."""

from __future__ import annotations

import json
from pathlib import Path


def reach_of(folder: Path) -> int | None:
    """Tokens before a prompt's last one that must show in it; None: all of them.

    Where every layer has a window, a layer carries what it sees at most `window - 1` tokens on, so
    that the first token of a long prompt cannot show in the last at all. Half the layers' worth is
    asked for: there are many ways from there to the last token, and from the far edge only one.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    window, kinds = config.get("sliding_window"), config.get("layer_types")
    everywhere = config.get("model_type") == "mistral" if kinds is None else set(kinds) == _NARROW
    if not window or not everywhere:
        return None
    return (int(window) - 1) * max(1, int(config["num_hidden_layers"]) // 2)


_NARROW = {"sliding_attention"}

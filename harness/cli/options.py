"""`--set NAME=VALUE` and `--size NAME=N`: from the command line to plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.cli.errors import UsageError

SIZES = (
    *("cases", "array_cases", "long_cases", "chunk"),
    *("max_num_seqs", "max_model_len", "max_case_tokens"),
)
"""Fields of a checkpoint's plan that a run may set otherwise than its profile."""


def options_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Values are JSON where they can be read as such, else text. Raises UsageError."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name:
            raise UsageError(f"--set takes NAME=VALUE, got {pair!r}")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def sizes_of(pairs: Sequence[str]) -> dict[str, int]:
    """Sizes by name, whole numbers of at least 1. Raises UsageError."""
    found = {}
    for name, value in options_of(pairs).items():
        if name not in SIZES or not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UsageError(
                f"--size takes NAME=N with N at least 0 and NAME one of {', '.join(SIZES)}; got "
                f"{name}={value}"
            )
        found[name] = value
    return found

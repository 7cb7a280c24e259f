"""What names the bytes of a checkpoint that is made here: the code that makes it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def recipe_of(*modules: str) -> str:
    """A text that changes whenever one of these modules of this package does.

    A number changed by hand is forgotten sooner or later, and then a cache that holds the former
    bytes hides, on the machine of whoever forgot it, what every fresh machine sees.
    """
    digest = hashlib.sha256()
    for module in sorted(modules):
        digest.update(module.encode() + b"\0")
        digest.update(Path(__file__).with_name(f"{module}.py").read_bytes() + b"\0")
    return digest.hexdigest()

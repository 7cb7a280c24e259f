"""What a backend is, and the table of backends."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final, Protocol

import torch

from engine.errors import ConfigurationError


class AttendRows(Protocol):
    """softmax(scale * q k^T) v for the rows of one sequence, grouped-query heads included."""

    def __call__(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *,
        mask: torch.Tensor | None,
        scale: float,
    ) -> torch.Tensor:
        """Shapes: q [R, H, d], k and v [N, H_kv, d] -> [R, H, d]; head h reads h // (H / H_kv).

        mask [R, N] bool: True where the row sees the key; each row sees at least one. None: all.
        """
        ...


BACKENDS: Final = {
    "naive": "engine.attention.naive:attend_rows",
    "sdpa": "engine.attention.sdpa:attend_rows",
}
"""Name -> module:function, resolved when first used."""


@cache
def backend(name: str) -> AttendRows:
    """The backend called `name`. Raises ConfigurationError listing the known ones."""
    if name not in BACKENDS:
        raise ConfigurationError(
            f"attention={name!r} is not a backend: expected one of {sorted(BACKENDS)}"
        )
    module, function = BACKENDS[name].split(":")
    attend: AttendRows = getattr(import_module(module), function)
    return attend

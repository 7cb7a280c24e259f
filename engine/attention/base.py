"""What a backend is, and the table of backends."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

import torch

from engine.attention.calls import counted
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
        causal: bool = False,
    ) -> torch.Tensor:
        """Shapes: q [R, H, d], k and v [N, H_kv, d] -> [R, H, d]; head h reads h // (H / H_kv).

        mask [R, N] bool: True where the row sees the key; each row sees at least one. None: all, or
        with `causal`, where R = N, row i sees the keys 0 .. i.
        """
        ...


class AttendBatch(Protocol):
    """All of the paged operator, for every sequence of a batch at once."""

    def __call__(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cache_keys: torch.Tensor,
        cache_values: torch.Tensor,
        row_offsets: torch.Tensor,
        context_starts: torch.Tensor,
        block_tables: torch.Tensor,
        slot_mapping: torch.Tensor,
        *,
        block_size: int,
        scale: float,
        causal: bool,
        window: int,
    ) -> torch.Tensor:
        """As `engine.attention.op`, without waiting for the device. -> [T, H, d]."""
        ...


BACKENDS: Final = {
    "naive": "engine.attention.naive:attend_rows",
    "sdpa": "engine.attention.sdpa:attend_rows",
}
"""Backends that attend one sequence at a time: name -> module:function, resolved when used."""
BATCH_BACKENDS: Final = {"triton": "engine.attention.triton:attend_batch"}
"""Backends that take the whole batch."""


@cache
def backend(name: str) -> AttendRows:
    """A backend of one sequence. Raises ConfigurationError listing the known ones."""
    if name not in BACKENDS:
        raise ConfigurationError(
            f"attention={name!r} is not a backend: expected one of "
            f"{sorted({**BACKENDS, **BATCH_BACKENDS})}"
        )
    attend: AttendRows = _resolved(BACKENDS[name])
    return attend


@cache
def batch_backend(name: str) -> AttendBatch | None:
    """The backend called `name` if it takes the whole batch, else None."""
    attend: AttendBatch | None = None
    if name in BATCH_BACKENDS:
        attend = _resolved(BATCH_BACKENDS[name])
    return attend


def _resolved(place: str) -> Any:
    module, function = place.split(":")
    return counted(getattr(import_module(module), function))

"""Rows kept from one chunk of a prompt to the next."""

from __future__ import annotations

from collections.abc import Collection

import torch

from engine.errors import LedgerError


class ChunkStore:
    """Retained rows of requests whose prompt is not through yet.

    Owns: the retained tensors, by request id. What is put in must be owned by the caller and is
    owned by the store from then on. A request's rows leave at its finish (`take`) or at its
    abort (`clear`); an abort must be ordered after the last step submitted for the request.
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[torch.Tensor]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all retained rows."""
        return sum(t.numel() * t.element_size() for rows in self._rows.values() for t in rows)

    def count(self, request_id: str) -> int:
        """How many tensors are retained for a request."""
        return len(self._rows.get(request_id, ()))

    def append(self, request_id: str, rows: torch.Tensor) -> None:
        self._rows.setdefault(request_id, []).append(rows)

    def take(self, request_id: str) -> list[torch.Tensor]:
        """Give up everything retained for a request, oldest first; empty if nothing was."""
        return self._rows.pop(request_id, [])

    def clear(self, request_id: str) -> None:
        self._rows.pop(request_id, None)

    def reset(self) -> None:
        self._rows.clear()

    def expect(self, request_id: str, *, retained: bool) -> None:
        """Raise `LedgerError` unless a request has (or has not) something retained."""
        if (self.count(request_id) > 0) is not retained:
            raise LedgerError(
                f"request {request_id!r}: expected {'some' if retained else 'no'} retained rows, "
                f"got {self.count(request_id)} chunks; a first chunk follows none, "
                "a later chunk follows a retained one"
            )

    def check_integrity(self, active_ids: Collection[str]) -> None:
        """Raise `LedgerError` if rows are retained for a request that is not active."""
        stray = sorted(set(self._rows) - set(active_ids))
        if stray:
            raise LedgerError(
                f"rows are retained for {stray}, active requests are {sorted(active_ids)}"
            )

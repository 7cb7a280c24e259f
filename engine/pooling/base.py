"""What one step hands to pooling, and what a pooling method is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from engine.errors import LedgerError
from engine.plan import StepPlan
from engine.request import PoolingRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingEntry:
    """One request's piece of a packed batch; all of it is known on the host.

    Its hidden states are rows [row, row + count) of the batch and stand for the prompt's tokens
    [start, start + count). `finishes`: the piece holds the prompt's last token.
    """

    request: PoolingRequest
    row: int
    count: int
    start: int
    finishes: bool

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def skipped(self) -> int:
        """Leading tokens that sequence-level methods leave out: an instruction's."""
        return self.request.params.prompt_tokens or 0

    @property
    def end(self) -> int:
        """Prompt tokens that hidden states exist for once this step has run."""
        return self.start + self.count

    def rows_of(self, hidden: torch.Tensor) -> torch.Tensor:
        """View [count, D] of this entry's rows of `hidden` [T, D]; borrowed, not owned."""
        return hidden[self.row : self.row + self.count]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingBatch:
    """The S entries of one step in batch order.

    `row_offsets` [S + 1] int64, on the device: entry i has rows [row_offsets[i],
    row_offsets[i + 1]). It says the same as the entries' `row` and `count`, as the device sees
    it when the operation runs; reading it on the host would wait for the device.
    """

    entries: tuple[PoolingEntry, ...]
    row_offsets: torch.Tensor

    def __post_init__(self) -> None:
        expected = (len(self.entries) + 1,)
        if tuple(self.row_offsets.shape) != expected or self.row_offsets.dtype != torch.int64:
            raise LedgerError(
                f"row_offsets: expected int64 {expected}, "
                f"got {self.row_offsets.dtype} {tuple(self.row_offsets.shape)}"
            )
        row = 0
        for entry in self.entries:
            if entry.row != row or entry.count < 1:
                raise LedgerError(
                    f"request {entry.request_id!r}: expected rows packed from row={row} and "
                    f"count >= 1, got row={entry.row}, count={entry.count}"
                )
            row += entry.count

    @classmethod
    def of_step(
        cls, plan: StepPlan, requests: Mapping[str, PoolingRequest], row_offsets: torch.Tensor
    ) -> PoolingBatch:
        """The batch of a step whose entries are packed in plan order."""
        entries = []
        row = 0
        for entry in plan.entries:
            entries.append(
                PoolingEntry(
                    request=requests[entry.request_id],
                    row=row,
                    count=entry.count,
                    start=entry.start,
                    finishes=entry.finishes,
                )
            )
            row += entry.count
        return cls(entries=tuple(entries), row_offsets=row_offsets)

    @property
    def num_rows(self) -> int:
        return sum(entry.count for entry in self.entries)


class PoolingMethod(Protocol):
    """Which rows of the hidden states answer a request.

    Called once a step, if any entry is a member. A method may retain rows of unfinished
    requests in its `ChunkStore` and must have cleared them when it returns the finished ones.
    """

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        """Rows [n, D] of every *finished* member, by its index in `batch.entries`.

        `hidden` is [T, D] with T >= batch.num_rows (rows beyond are padding).
        """
        ...


def gather_rows(hidden: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Rows `index` [S] int64 (on the device) of `hidden` [T, D], as an owned [S, D] tensor.

    A device cannot raise, so an index outside the batch is clamped into it.
    """
    return hidden.index_select(0, index.clamp(0, hidden.shape[0] - 1))

"""LAST: the hidden state of the prompt's last token."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.pooling.base import PoolingBatch, gather_rows


class LastPooling:
    """Picks each finished entry's last row; nothing is retained between chunks.

    The row's index comes from the device's row offsets: entry i ends at row_offsets[i + 1].
    """

    def __call__(
        self, hidden: torch.Tensor, batch: PoolingBatch, members: Sequence[int]
    ) -> dict[int, torch.Tensor]:
        finished = [i for i in members if batch.entries[i].finishes]
        if not finished:
            return {}
        rows = gather_rows(hidden, batch.row_offsets[1:] - 1)
        return {i: rows[i : i + 1] for i in finished}

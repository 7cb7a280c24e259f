"""A step's inputs: staged by the host in one flat buffer, copied to the device in one operation.

One `int64` buffer holds every array, so the copy the device makes is a single operation and the
staging has a single last reader. Legend: T rows of the packed batch (padded), S sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
import torch

from engine.plan import StepPlan
from engine.request import PoolingRequest
from engine.scheduler.base import Allocation
from engine.stream.base import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLayout:
    """Where each array lies in the flat buffer."""

    max_tokens: int
    max_seqs: int
    max_blocks: int
    """KV blocks of the longest prompt; at least 1, so no array is empty."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        t, s = self.max_tokens, self.max_seqs
        return {
            "token_ids": (t,),
            "type_ids": (t,),
            "token_to_seq": (t,),
            "slot_mapping": (t,),
            "row_offsets": (s + 1,),
            "state_slots": (s,),
            "is_new": (s,),
            "first_positions": (s,),
            "counts": (s,),
            "block_tables": (s, self.max_blocks),
        }

    @property
    def size(self) -> int:
        return sum(int(torch.Size(shape).numel()) for shape in self.shapes.values())


class InputArrays:
    """Owns: one flat buffer laid out by `InputLayout`, on the host (staging) or on the device."""

    def __init__(
        self, name: str, layout: InputLayout, device: torch.device, *, pinned: bool
    ) -> None:
        flat = torch.zeros(layout.size, dtype=torch.int64, device=device)
        self.flat = flat.pin_memory() if pinned else flat
        self.buffer = Buffer(name, self.flat)
        self._views: dict[str, torch.Tensor] = {}
        start = 0
        for array, shape in layout.shapes.items():
            size = int(torch.Size(shape).numel())
            self._views[array] = self.flat[start : start + size].view(shape)
            start += size

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self.buffer,)

    def __getitem__(self, array: str) -> torch.Tensor:
        return self._views[array]

    def stage(
        self,
        plan: StepPlan,
        requests: Mapping[str, PoolingRequest],
        allocations: Mapping[str, Allocation],
        *,
        block_size: int,
        padded_tokens: int,
    ) -> None:
        """Write one step. Padding rows: token 0, no KV slot (-1), past the last row offset."""
        entries = plan.entries
        counts = [entry.count for entry in entries]
        offsets = [0, *accumulate(counts)]
        total, num_seqs = offsets[-1], len(entries)
        per_entry = [(requests[e.request_id], allocations[e.request_id], e) for e in entries]
        self._write("token_ids", (r.token_ids[e.start : e.end] for r, _, e in per_entry), total)
        types = ((r.type_ids or (0,) * e.end)[e.start : e.end] for r, _, e in per_entry)
        self._write("type_ids", types, total)
        columns = {
            "row_offsets": offsets,
            "state_slots": [allocation.slot for _, allocation, _ in per_entry],
            "is_new": [int(allocation.is_new) for _, allocation, _ in per_entry],
            "first_positions": [entry.start for entry in entries],
            "counts": counts,
        }
        for name, column in columns.items():
            self[name][: len(column)] = torch.tensor(column)
        self["row_offsets"][num_seqs + 1 :] = total

        sequence = torch.repeat_interleave(torch.arange(num_seqs), torch.tensor(counts))
        self["token_to_seq"][:total] = sequence
        paged = False
        for index, (_, allocation, _) in enumerate(per_entry):
            if allocation.blocks:
                paged = True
                blocks = torch.tensor(allocation.blocks)
                self["block_tables"][index, : len(blocks)] = blocks
        if paged:
            starts = torch.tensor([e.start - row for e, row in zip(entries, offsets, strict=False)])
            positions = torch.arange(total) + starts[sequence]
            blocks = self["block_tables"][sequence, positions // block_size]
            self["slot_mapping"][:total] = blocks * block_size + positions % block_size
        else:
            self["slot_mapping"][:total] = -1
        padding = slice(total, padded_tokens)
        for name, value in (("token_ids", 0), ("type_ids", 0), ("token_to_seq", 0)):
            self[name][padding] = value
        self["slot_mapping"][padding] = -1

    def _write(self, name: str, pieces: Iterable[Sequence[int]], total: int) -> None:
        """The first `total` values of an array, from pieces one after another."""
        flat = np.fromiter(chain.from_iterable(pieces), dtype=np.int64, count=total)
        self[name][:total] = torch.from_numpy(flat)

    def load(self, staging: InputArrays) -> None:
        """The copy to the device: reads `staging` when it RUNS, like a pinned-memory copy."""
        self.flat.copy_(staging.flat, non_blocking=True)

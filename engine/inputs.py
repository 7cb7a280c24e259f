"""A step's inputs: staged by the host in one flat buffer, copied to the device in one operation.

One `int64` buffer holds every array, so the copy the device makes is a single operation and the
staging has a single last reader. Legend: T rows of the packed batch (padded), S sequences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
        row = 0
        for index, entry in enumerate(plan.entries):
            request, allocation = requests[entry.request_id], allocations[entry.request_id]
            rows = slice(row, row + entry.count)
            self["token_ids"][rows] = torch.tensor(request.token_ids[entry.start : entry.end])
            types = request.type_ids[entry.start : entry.end]
            self["type_ids"][rows] = torch.tensor(types) if types else 0
            self["token_to_seq"][rows] = index
            self["row_offsets"][index] = row
            self["state_slots"][index] = allocation.slot
            self["is_new"][index] = int(entry.start == 0)
            self["counts"][index] = entry.count
            if allocation.blocks:
                blocks = torch.tensor(allocation.blocks)
                self["block_tables"][index, : len(blocks)] = blocks
                positions = torch.arange(entry.start, entry.end)
                self["slot_mapping"][rows] = (
                    blocks[positions // block_size] * block_size + positions % block_size
                )
            else:
                self["slot_mapping"][rows] = -1
            row += entry.count
        self["row_offsets"][len(plan.entries) :] = row
        padding = slice(row, padded_tokens)
        self["token_ids"][padding] = 0
        self["type_ids"][padding] = 0
        self["token_to_seq"][padding] = 0
        self["slot_mapping"][padding] = -1

    def load(self, staging: InputArrays) -> None:
        """The copy to the device: reads `staging` when it RUNS, like a pinned-memory copy."""
        self.flat.copy_(staging.flat, non_blocking=True)

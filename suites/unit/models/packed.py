"""Drives a model the way a runner does, with the batch laid out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from engine.execution.compiled import UNBOUNDED
from engine.models import Block, LayerCache, Model

Call = Callable[..., torch.Tensor]
BLOCK_SIZE = 16


def eager(block: Block, *tensors: object) -> torch.Tensor:
    """The block's own forward."""
    out: torch.Tensor = block(*tensors)
    return out


@dataclass(slots=True, kw_only=True)
class PackedRun:
    """Computes prompts together, `chunk` tokens of each a step (None: whole).

    Owns: the layers' caches, whose blocks each prompt gets in shuffled order.
    """

    model: Model
    prompts: Sequence[Sequence[int]]
    types: Sequence[Sequence[int]] | None = None
    chunk: int | None = None
    min_rows: int = 8
    call: Call = eager
    block_size: int = BLOCK_SIZE
    spare_columns: int = 0
    """Columns of the block tables beyond what the longest prompt needs."""
    steps: int = field(default=0, init=False)

    def hidden(self) -> list[torch.Tensor]:
        """Final hidden states of each prompt, [n, D]."""
        with torch.inference_mode():
            tables, caches = self._memory()
            done = [0] * len(self.prompts)
            rows: list[list[torch.Tensor]] = [[] for _ in self.prompts]
            while any(d < len(p) for d, p in zip(done, self.prompts, strict=True)):
                self._step(done, rows, tables, caches)
        return [torch.cat(parts) for parts in rows]

    def _memory(self) -> tuple[torch.Tensor, list[LayerCache]]:
        config = self.model.config
        longest = max(map(len, self.prompts))
        columns = -(-longest // self.block_size) + self.spare_columns
        count = len(self.prompts) * columns
        tables = torch.randperm(count, generator=torch.Generator().manual_seed(1))
        shape = (count * self.block_size, config.num_kv_heads, config.head_dim)

        def zeros() -> torch.Tensor:
            return torch.zeros(shape, dtype=self.model.dtype)

        caches = [
            LayerCache(keys=zeros(), values=zeros(), block_size=self.block_size)
            for _ in self.model.blocks
        ]
        return tables.view(len(self.prompts), columns), caches

    def _step(
        self,
        done: list[int],
        rows: list[list[torch.Tensor]],
        tables: torch.Tensor,
        caches: list[LayerCache],
    ) -> None:
        self.steps += 1
        ids: list[int] = []
        types: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        offsets, starts, members = [0], [], []
        for index, prompt in enumerate(self.prompts):
            first = done[index]
            stop = len(prompt) if self.chunk is None else min(first + self.chunk, len(prompt))
            if stop == first:
                continue
            ids += prompt[first:stop]
            types += self.types[index][first:stop] if self.types else [0] * (stop - first)
            positions += range(first, stop)
            for position in range(first, stop):
                block = int(tables[index, position // self.block_size])
                slots.append(block * self.block_size + position % self.block_size)
            offsets.append(offsets[-1] + stop - first)
            starts.append(first)
            members.append(index)
            done[index] = stop
        padding = max(self.min_rows - len(ids), 0)
        empty = len(self.prompts) - len(members)  # sequences are padded as a runner pads them
        token_ids, type_ids, places = (
            torch.tensor(column + [0] * padding) for column in (ids, types, positions)
        )
        layout = (
            torch.tensor(offsets + offsets[-1:] * empty),
            torch.tensor(starts + [0] * empty),
            tables[members + [0] * empty],
            torch.tensor(slots + [-1] * padding),
        )
        x = self.model.embed(token_ids, type_ids, places)
        cos, sin = self.model.rotary(places)
        for block_, cache in zip(self.model.blocks, caches, strict=True):
            # Copies: a graph first called on a view is tied to the size of what it views. The
            # engine primes its own on the first table, which begins where its storage does.
            table = block_.kind.rotary
            x = self.call(
                block_,
                x,
                cos[table].clone(),
                sin[table].clone(),
                cache.keys,
                cache.values,
                *layout,
                cache.block_size,
                block_.kind.window or UNBOUNDED,
            )
        x = self.model.final_norm(x)
        for place, index in enumerate(members):
            rows[index].append(x[offsets[place] : offsets[place + 1]])


def prompt(length: int, *, seed: int = 0, vocab_size: int = 300) -> list[int]:
    """A prompt of drawn token ids."""
    generator = torch.Generator().manual_seed(1000 * seed + length)
    return torch.randint(1, vocab_size, (length,), generator=generator).tolist()

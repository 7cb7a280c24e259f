"""A rank's fixed memory: everything that is made once and used by every step."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.buffers import Slots
from engine.config import EngineConfig
from engine.execution.base import Frame, Layer
from engine.inputs import InputArrays, InputLayout
from engine.models.base import AttentionMetadata, LayerCache
from engine.scheduler.base import ScheduledStep
from engine.stage import Stage
from engine.stream.base import Buffer, Device, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLimits:
    """Sizes every rank's fixed buffers are built for."""

    max_tokens: int
    max_seqs: int
    max_model_len: int
    max_slots: int
    """Sequences that may hold device state at once: those in flight and those running."""
    num_blocks: int


class RankMemory:
    """Owns: one rank's staging slots, device inputs, counters, hidden and receive buffers, and KV.

    Whoever runs the rank's steps borrows them, in stream order.
    """

    def __init__(
        self, config: EngineConfig, limits: RunnerLimits, model: Stage, device: Device, rank: int
    ) -> None:
        self._config, self._model, self._device, self._rank = config, model, device, rank
        where = torch.device(config.device)
        blocks = -(-limits.max_model_len // config.cache.block_size)
        layout = InputLayout(
            max_tokens=limits.max_tokens, max_seqs=limits.max_seqs, max_blocks=blocks
        )
        self.staging = Slots(
            device,
            lambda i: InputArrays(
                f"staging{i}@{rank}", layout, torch.device("cpu"), pinned=where.type == "cuda"
            ),
            depth=config.max_steps_in_flight,
            kind=config.inputs,
        )
        # What steps hand to compiled code must be inference tensors throughout: a plain one among
        # them is another dispatch key, hence another graph.
        with torch.inference_mode():
            self.inputs = InputArrays(f"inputs@{rank}", layout, where, pinned=False)
            dtype = getattr(torch, config.execution.dtype)
            width = model.config.hidden_size
            self.counters = self._buffer("counters", (limits.max_slots,), torch.int64)
            self.hidden = self._buffer("hidden", (limits.max_tokens, width), dtype)
            self.received = self._buffer("received", (limits.max_tokens, width), dtype)
            device.register(self.inputs.buffer)
            tokens = limits.num_blocks * config.cache.block_size
            block = model.blocks[0]
            shape = (tokens, block.num_kv_heads, block.head_dim)
            self.layers = [
                Layer(
                    index=model.first_layer + place,
                    block=block,
                    cache=LayerCache(
                        keys=torch.zeros(shape, dtype=dtype, device=where),
                        values=torch.zeros(shape, dtype=dtype, device=where),
                        block_size=config.cache.block_size,
                    ),
                )
                for place, block in enumerate(model.blocks)
            ]

    def idle_frame(self) -> Frame:
        """A step of the most rows in which no row belongs to a sequence and no key is kept."""
        frame, inputs = Frame(), self.inputs
        frame.x = torch.zeros_like(self.hidden.tensor)
        frame.positions = torch.zeros_like(inputs["token_ids"])
        frame.cos, frame.sin = self._model.rotary(frame.positions)
        frame.meta = AttentionMetadata(
            row_offsets=torch.zeros_like(inputs["row_offsets"]),
            context_starts=torch.zeros_like(inputs["state_slots"]),
            block_tables=torch.zeros_like(inputs["block_tables"]),
            slot_mapping=torch.full_like(inputs["slot_mapping"], -1),
        )
        return frame

    def poison(self, stream: Stream, step: ScheduledStep) -> None:
        """Overwrite with NaN what no operation behind this one may read before it is written.

        In stream order: dropped KV blocks, whose last readers were queued before, and the hidden
        and received rows of the step before.
        """
        size = self._config.cache.block_size
        blocks = torch.tensor(step.dropped, dtype=torch.int64, device=self._config.device)
        rows = (blocks[:, None] * size + torch.arange(size, device=blocks.device)).flatten()

        def poison() -> None:
            for layer in self.layers:
                layer.cache.keys[rows] = torch.nan
                layer.cache.values[rows] = torch.nan
            self.hidden.tensor.fill_(torch.nan)
            self.received.tensor.fill_(torch.nan)

        stream.submit("poison", poison, step=step.plan.index, writes=(self.hidden, self.received))

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Buffer:
        tensor = torch.zeros(shape, dtype=dtype, device=self._config.device)
        buffer = Buffer(f"{name}@{self._rank}", tensor)
        self._device.register(buffer)
        return buffer

"""The memory that a rank's recordings read and write, the same for every bucket."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.execution.base import Frame, Layer
from engine.models.base import AttentionMetadata
from engine.stream.base import Buffer, Device


class StaticBuffers:
    """Owns: persistent inputs and outputs of one rank's stage, as large as its largest bucket.

    A bucket of n rows uses the first n of each.
    """

    def __init__(self, device: Device, rank: int, layers: Sequence[Layer], idle: Frame) -> None:
        """`idle`: a step of the most rows that belongs to no sequence; its tensors are copied."""
        meta, block = idle.meta, layers[0].block
        self.x, self.cos, self.sin = idle.x.clone(), idle.cos.clone(), idle.sin.clone()
        self.row_offsets = meta.row_offsets.clone()
        self.context_starts = meta.context_starts.clone()
        self.block_tables = meta.block_tables.clone()
        self.slot_mapping = meta.slot_mapping.clone()
        rows = len(self.x)
        heads = (block.num_heads, block.num_kv_heads, block.num_kv_heads)
        self.heads = [self.x.new_zeros((rows, count, block.head_dim)) for count in heads]
        """Queries, keys and values of a stage that is recorded piecewise."""
        self.attended = self.x.new_zeros((rows, block.num_heads * block.head_dim))
        self.out = Buffer(f"graph output@{rank}", torch.zeros_like(self.x))
        named = {"x": self.x, "slot mapping": self.slot_mapping, "row offsets": self.row_offsets}
        self.inputs = [Buffer(f"graph {name}@{rank}", t) for name, t in named.items()]
        for buffer in (self.out, *self.inputs):
            device.register(buffer)
        self._num_layers = len(layers)
        self._layer_outputs: torch.Tensor | None = None

    def load(self, frame: Frame, rows: int) -> None:
        """Copy a step's inputs here."""
        self.x[:rows].copy_(frame.x)
        self.cos[:, :rows].copy_(frame.cos)
        self.sin[:, :rows].copy_(frame.sin)
        self.slot_mapping[:rows].copy_(frame.meta.slot_mapping)
        self.row_offsets.copy_(frame.meta.row_offsets)
        self.context_starts.copy_(frame.meta.context_starts)
        self.block_tables.copy_(frame.meta.block_tables)

    def angles(self, layer: Layer, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of a layer's kind, [rows, d]."""
        rotary = layer.block.kind.rotary
        return self.cos[rotary][:rows], self.sin[rotary][:rows]

    def metadata(self, rows: int) -> AttentionMetadata:
        return AttentionMetadata(
            row_offsets=self.row_offsets,
            context_starts=self.context_starts,
            block_tables=self.block_tables,
            slot_mapping=self.slot_mapping[:rows],
        )

    def attention(self, layer: Layer, rows: int) -> tuple[torch.Tensor | int, ...]:
        """`Block.forward`'s arguments between x and the window."""
        return (
            *self.angles(layer, rows),
            layer.cache.keys,
            layer.cache.values,
            self.row_offsets,
            self.context_starts,
            self.block_tables,
            self.slot_mapping[:rows],
            layer.cache.block_size,
        )

    def layer_output(self, place: int, rows: int) -> torch.Tensor:
        """Where a tapped recording leaves the output of layer `place` of the stage, [rows, D]."""
        if self._layer_outputs is None:
            with torch.inference_mode():
                self._layer_outputs = self.x.new_zeros((self._num_layers, *self.x.shape))
        return self._layer_outputs[place][:rows]

"""The contract of an execution mode, and the scratch space of one step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch

    from engine.execution.queue import StepQueue
    from engine.models.base import AttentionMetadata, Block, LayerCache
    from engine.pooling.dispatcher import Pooled
    from engine.stream.base import Device

PHASES = ("attention_inputs", "attend", "attention_output", "feed_forward")
"""The four kernel-like stages of every block; one operation each in eager mode."""


class Frame:
    """Owns: the tensors one step hands from operation to operation on one rank.

    Nothing here outlives the step. T is the padded number of rows of the packed batch.
    """

    __slots__ = (
        "attended",
        "cos",
        "key",
        "meta",
        "pooled",
        "positions",
        "query",
        "sin",
        "value",
        "x",
        "y",
    )

    def __init__(self) -> None:
        self.positions: torch.Tensor  # [T] int64
        self.cos: torch.Tensor  # [K, T, head_dim], a row for each of the model's rotary tables
        self.sin: torch.Tensor  # [K, T, head_dim]
        self.meta: AttentionMetadata
        self.x: torch.Tensor  # [T, hidden_size]
        self.y: torch.Tensor  # [T, hidden_size], summed over tensor ranks, yet to be added to x
        self.query: torch.Tensor  # [T, num_heads, head_dim]
        self.key: torch.Tensor  # [T, num_kv_heads, head_dim]
        self.value: torch.Tensor  # [T, num_kv_heads, head_dim]
        self.attended: torch.Tensor  # [T, num_heads * head_dim]
        self.pooled: list[Pooled] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer of a rank's stage, with its keys and values."""

    index: int
    """In the whole model."""
    block: Block
    cache: LayerCache


Tap = Callable[[int, "torch.Tensor"], None]
"""Takes a layer's output [T, D], by the number of layers behind it."""


class Execution(Protocol):
    """Turns a stage's blocks into stream operations and counts what really ran."""

    @property
    def compiled_calls(self) -> int:
        """Calls that entered a compiler's artefact on behalf of this rank."""

    @property
    def eager_stages(self) -> int:
        """Stages run outside any artefact on behalf of this rank."""

    @property
    def graphs(self) -> int:
        """Graphs the compiler built for this rank's blocks."""

    @property
    def replays(self) -> Mapping[int, int]:
        """Rows -> how often a recording of so many rows was replayed; counted as it was."""

    def padded_rows(self, rows: int) -> int:
        """Rows a step of so many is run with."""

    def prepare(self, device: Device, rank: int, layers: Sequence[Layer], idle: Frame) -> None:
        """Get ready for steps of at most `idle`'s rows; `idle` belongs to no sequence."""

    def submit_stage(
        self, queue: StepQueue, layers: Sequence[Layer], frame: Frame, tap: Tap | None
    ) -> Iterator[None]:
        """Enqueue the work that takes `frame.x` through all layers of the stage.

        Stops where the tensor ranks sum; see `engine.collectives.AllReduce`.
        """


class BlockByBlock(ABC):
    """An execution that enqueues one block after another."""

    @property
    def replays(self) -> Mapping[int, int]:
        return {}

    def padded_rows(self, rows: int) -> int:
        return rows

    def prepare(self, device: Device, rank: int, layers: Sequence[Layer], idle: Frame) -> None:
        del device, rank, layers, idle

    def submit_stage(
        self, queue: StepQueue, layers: Sequence[Layer], frame: Frame, tap: Tap | None
    ) -> Iterator[None]:
        for layer in layers:
            yield from self.submit_block(queue, layer.index, layer.block, layer.cache, frame)
            if tap is not None:
                queue.submit(f"tap {layer.index}", partial(_tap, tap, layer.index + 1, frame))

    @abstractmethod
    def submit_block(
        self, queue: StepQueue, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> Iterator[None]:
        """Enqueue the work that takes `frame.x` through `block` (absolute layer `index`).

        Stops where the tensor ranks sum; see `engine.collectives.AllReduce`.
        """


def _tap(tap: Tap, layer: int, frame: Frame) -> None:
    tap(layer, frame.x)

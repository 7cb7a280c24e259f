"""The contract of an execution mode, and the scratch space of one step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch

    from engine.execution.queue import StepQueue
    from engine.models.base import AttentionMetadata, Block, LayerCache
    from engine.pooling.dispatcher import Pooled

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


class Execution(Protocol):
    """Turns one block into stream operations and counts what really ran."""

    @property
    def compiled_calls(self) -> int:
        """Calls that entered a compiler's artefact on behalf of this rank."""

    @property
    def eager_stages(self) -> int:
        """Stages run outside any artefact on behalf of this rank."""

    @property
    def graphs(self) -> int:
        """Graphs the compiler built for this rank's blocks."""

    def submit_block(
        self, queue: StepQueue, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> Iterator[None]:
        """Enqueue the work that takes `frame.x` through `block` (absolute layer `index`).

        Stops where the tensor ranks sum; see `engine.collectives.AllReduce`.
        """

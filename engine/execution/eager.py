"""Eager: one stream operation for each of a block's four phases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from engine.execution.base import BlockByBlock

if TYPE_CHECKING:
    import torch

    from engine.execution.base import Frame
    from engine.execution.queue import StepQueue
    from engine.models.base import Block, LayerCache


class EagerExecution(BlockByBlock):
    """Owns: the count of stages this rank has run eagerly."""

    def __init__(self) -> None:
        self.eager_stages = 0
        self.compiled_calls = 0
        self.graphs = 0

    def submit_block(
        self, queue: StepQueue, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> Iterator[None]:
        def attention_inputs() -> None:
            self.eager_stages += 1
            frame.query, frame.key, frame.value = block.attention_inputs(
                frame.x, frame.cos[block.kind.rotary], frame.sin[block.kind.rotary]
            )

        def attend() -> None:
            self.eager_stages += 1
            frame.attended = block.attend(
                frame.query, frame.key, frame.value, cache, frame.meta, block.kind.window
            )

        def attention_output() -> torch.Tensor:
            self.eager_stages += 1
            return block.attention_output(frame.attended)

        def add_attention(y: torch.Tensor) -> None:
            frame.x = block.add_attention(frame.x, y)

        def feed_forward() -> torch.Tensor:
            self.eager_stages += 1
            return block.feed_forward(frame.x)

        def add_feed_forward(y: torch.Tensor) -> None:
            frame.x = block.add_feed_forward(frame.x, y)

        queue.submit(f"layer {index} attention_inputs", attention_inputs)
        queue.submit(f"layer {index} attend", attend)
        for product, add in ((attention_output, add_attention), (feed_forward, add_feed_forward)):
            name = f"layer {index} {product.__name__}"
            if queue.all_reduce is None:
                queue.submit(name, partial(_then, product, add))
            else:
                yield from queue.sum(name, product, add)


def _then(product: Callable[[], torch.Tensor], add: Callable[[torch.Tensor], None]) -> None:
    add(product())

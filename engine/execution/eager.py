"""Eager: one stream operation for each of a block's four phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.execution.base import Frame, Submit
    from engine.models.base import Block, LayerCache


class EagerExecution:
    """Owns: the count of stages this rank has run eagerly."""

    def __init__(self) -> None:
        self.eager_stages = 0
        self.compiled_calls = 0
        self.graphs = 0

    def submit_block(
        self, submit: Submit, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> None:
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

        def attention_output() -> None:
            self.eager_stages += 1
            frame.x = block.add_attention(frame.x, block.attention_output(frame.attended))

        def feed_forward() -> None:
            self.eager_stages += 1
            frame.x = block.add_feed_forward(frame.x, block.feed_forward(frame.x))

        for phase in (attention_inputs, attend, attention_output, feed_forward):
            submit(f"layer {index} {phase.__name__}", phase)

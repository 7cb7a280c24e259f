"""A plug-in under which no two layers can share a compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from engine.execution.base import Frame
from engine.execution.queue import StepQueue
from engine.models.base import Block, LayerCache
from engine.runner import Runner
from harness.faults.base import replace_method

_DTYPES = (torch.int64, torch.int32, torch.int16, torch.uint8)


def every_layer(runner: Runner) -> Callable[[], None]:
    """Give each layer's block table a dtype of its own; eager kernels take them all."""
    execution: Any = runner.execution
    submit_block = execution.submit_block

    def narrowed(
        queue: StepQueue, index: int, block: Block, cache: LayerCache, frame: Frame
    ) -> Iterator[None]:
        def narrow() -> None:
            tables = frame.meta.block_tables.to(_DTYPES[index % len(_DTYPES)])
            frame.meta = replace(frame.meta, block_tables=tables)

        queue.submit(f"layer {index} narrow tables", narrow)
        return submit_block(queue, index, block, cache, frame)

    return replace_method(execution, "submit_block", narrowed)

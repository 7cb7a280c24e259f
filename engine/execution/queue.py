"""One step's access to its rank's compute stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from engine.attention import AttentionCalls
from engine.collectives import AllReduce
from engine.stream.base import Buffer, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class StepQueue:
    """Enqueues operations of one step, all of which may read the step's inputs."""

    stream: Stream
    step: int
    rows: int
    """Rows of the step, padding included."""
    inputs: Buffer
    all_reduce: AllReduce | None
    """The sum over tensor ranks; None: there is one."""
    attention: AttentionCalls
    """Counts what the operations attend with."""

    def submit(
        self,
        name: str,
        fn: Callable[[], None],
        *,
        cost: int = 1,
        reads: Sequence[Buffer] = (),
        writes: Sequence[Buffer] = (),
    ) -> None:
        """Enqueue one operation, at a cost in kernels."""
        self.stream.submit(
            name,
            self.attention.count(fn),
            step=self.step,
            cost=cost,
            reads=(self.inputs, *reads),
            writes=writes,
        )

    def sum(
        self,
        name: str,
        summand: Callable[[], torch.Tensor],
        deliver: Callable[[torch.Tensor], None],
        *,
        cost: int = 1,
    ) -> Iterator[None]:
        """Enqueue this rank's summand and the sum over all tensor ranks; see `AllReduce.submit`."""
        assert self.all_reduce is not None, name
        return self.all_reduce.submit(
            self.stream,
            name,
            self.attention.count(summand),
            deliver,
            rows=self.rows,
            step=self.step,
            cost=cost,
            reads=(self.inputs,),
        )

"""Which rank does what: pipeline stages, and tensor ranks within each."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ParallelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One rank's place. Ranks count through a stage's tensor ranks first, then the next stage's."""

    rank: int
    num_stages: int
    tensor_ranks: int

    @classmethod
    def of(cls, parallel: ParallelConfig, rank: int) -> Place:
        """The place of rank `rank` of a configuration."""
        return cls(
            rank=rank,
            num_stages=parallel.pipeline_parallel_size,
            tensor_ranks=parallel.tensor_parallel_size,
        )

    @property
    def stage(self) -> int:
        return self.rank // self.tensor_ranks

    @property
    def tensor_rank(self) -> int:
        return self.rank % self.tensor_ranks

    @property
    def peers(self) -> range:
        """The ranks of this stage, this one among them, in the order their summands are added."""
        first = self.stage * self.tensor_ranks
        return range(first, first + self.tensor_ranks)

    @property
    def source(self) -> int | None:
        """The rank that hands hidden states to this one; None in the first stage."""
        return self.rank - self.tensor_ranks if self.stage else None

    @property
    def target(self) -> int | None:
        """The rank that this one hands hidden states to; None in the last stage."""
        last = self.stage == self.num_stages - 1
        return None if last else self.rank + self.tensor_ranks

    @property
    def answers(self) -> bool:
        """Whether this rank pools. All of the last stage hold the rows; the very last one pools."""
        return self.rank == self.num_stages * self.tensor_ranks - 1

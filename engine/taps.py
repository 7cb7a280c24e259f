"""Hidden states seen from outside, keyed so that rows line up across chunks and stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from engine.plan import PlanEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Tap:
    """Rows [count, D] of one request leaving `layer` in `step`, from absolute token `start`.

    Layer 0 is the embedding output, layer n the output of block n - 1.
    """

    request_id: str
    layer: int
    step: int
    start: int
    rows: torch.Tensor


class Taps:
    """Owns: the taps of one run on one rank. Off unless a run asks for them."""

    def __init__(self) -> None:
        self.enabled = False
        self._taps: list[Tap] = []

    def begin(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self._taps = []

    def capture(self, layer: int, step: int, entries: Sequence[PlanEntry], x: torch.Tensor) -> None:
        """Copy the rows of every entry of the packed batch `x` [T, D]; runs inside the stream."""
        row = 0
        for entry in entries:
            rows = x[row : row + entry.count].detach().to("cpu", copy=True)
            self._taps.append(
                Tap(
                    request_id=entry.request_id,
                    layer=layer,
                    step=step,
                    start=entry.start,
                    rows=rows,
                )
            )
            row += entry.count

    def taken(self) -> tuple[Tap, ...]:
        return tuple(self._taps)

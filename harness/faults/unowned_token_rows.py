"""S2: token rows of a prompt that fits one chunk leave the step as a view of a reused buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.faults.base import Fault, replace_method

if TYPE_CHECKING:  # the table of faults is read without loading torch
    import torch

    from engine.runner import Runner

FAULT = Fault(
    name="unowned-token-rows",
    plugin="harness.faults.unowned_token_rows:apply",
    mechanism=(
        "ALL pooling hands out the rows of a single-chunk prompt without copying them; the next "
        "step writes the hidden-state buffer before the copy to the host has read it"
    ),
    sources=("vllm#50931", "vllm#53828"),
    exposed_by=(frozenset({"async=async"}), frozenset({"pp=2"})),
    conditions="a token-level request with an identity head whose prompt fits one chunk",
    masked_by=("a prompt split over steps", "normalisation or any head that copies"),
    magnitude="whole rows replaced by another request's",
)


def apply(runner: Runner) -> Callable[[], None]:
    if runner.pooler is None:
        return lambda: None
    pooling = runner.pooler.all
    own: Any = pooling.own

    def borrow_single_chunk(
        rows: torch.Tensor, *, finishes: bool, retained: int, overlaps_steps: bool
    ) -> torch.Tensor:
        if finishes and retained == 0:
            return rows
        owned: torch.Tensor = own(
            rows, finishes=finishes, retained=retained, overlaps_steps=overlaps_steps
        )
        return owned

    return replace_method(pooling, "own", borrow_single_chunk)

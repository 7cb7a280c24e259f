"""Seeded perturbations: one row of one layer moved, only where all of a set of switches are on.

They measure attribution and localisation (`harness/trials/`), which never see them. Each is a
plug-in whose name says everything, so that any worker builds the same one from the name alone:
`harness.faults.perturbation:layer2_token19_milli300_when_chunk_compile`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.faults.base import Undo
from harness.faults.seams import nothing, on_blocks

if TYPE_CHECKING:  # names are read and drawn without loading torch
    from engine.execution.base import Frame
    from engine.plan import PlanEntry, StepPlan
    from engine.runner import Runner

_NAME = re.compile(r"layer(\d+)_token(\d+)_milli(\d+)_when((?:_[a-z]+)+)")

_ACTS: dict[str, Callable[[Runner], bool]] = {
    "compile": lambda runner: runner.config.execution.mode == "compiled",
    "chunk": lambda runner: bool(runner.config.scheduler.chunked_prefill),
    "async": lambda runner: runner.config.scheduler.async_scheduling,
    "pp": lambda runner: runner.config.parallel.pipeline_parallel_size > 1,
}
"""Axis -> whether a rank of this runner has it away from its baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """The row of absolute position `token` leaving block `layer`, moved by a share of its norm."""

    layer: int
    token: int
    milli: int
    """Length of the movement in thousandths of the row's own norm."""
    axes: tuple[str, ...]
    """It acts where all of these are away from their baseline; sorted."""

    @property
    def plugin(self) -> str:
        """`module:callable`, for a configuration."""
        when = "_".join(self.axes)
        return f"{__name__}:layer{self.layer}_token{self.token}_milli{self.milli}_when_{when}"

    @classmethod
    def parse(cls, name: str) -> Perturbation | None:
        """Inverse of the callable's name; None for another name."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        axes = tuple(sorted(match.group(4).strip("_").split("_")))
        if not set(axes) <= set(_ACTS):
            return None
        layer, token, milli = (int(match.group(i)) for i in (1, 2, 3))
        return cls(layer=layer, token=token, milli=milli, axes=axes)

    def __call__(self, runner: Runner) -> Undo:
        """Apply to one rank; returns the undo."""
        if not all(_ACTS[axis](runner) for axis in self.axes):
            return nothing
        return _plant(self, runner)

    def touches(self, entry: PlanEntry) -> bool:
        """Whether a step's entry computes the row; where chunking is needed, a split prompt's."""
        split = entry.count < entry.total or "chunk" not in self.axes
        return split and entry.start <= self.token < entry.end


def __getattr__(name: str) -> Any:
    """The perturbation of that name: `engine.plugins` looks plug-ins up as attributes."""
    found = Perturbation.parse(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def _plant(perturbation: Perturbation, runner: Runner) -> Undo:
    import torch  # noqa: PLC0415 - only where a rank runs

    seed = int(hashlib.sha256(perturbation.plugin.encode()).hexdigest()[:8], 16)
    width = runner.model.config.hidden_size
    direction = torch.randn(width, generator=torch.Generator().manual_seed(seed))
    direction = direction / direction.norm() * (perturbation.milli / 1000)

    def move(frame: Frame, plan: StepPlan) -> None:
        first, moved = 0, frame.x
        for entry in plan.entries:
            if perturbation.touches(entry):
                row = first + perturbation.token - entry.start
                moved = moved.clone()
                moved[row] += direction.to(moved) * moved[row].norm()
            first += entry.count
        frame.x = moved

    return on_blocks(runner, move, layer=perturbation.layer, after=True)

"""The contract between the engine and whoever runs the ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from engine.handle import StepHandle
from engine.plan import StepPlan
from engine.request import PoolingOutput, PoolingRequest
from engine.scheduler.base import ScheduledStep
from engine.taps import Tap
from engine.witness import RankWitness


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """What the ranks did during one run, as they tell it."""

    ranks: tuple[RankWitness, ...]
    chunks: Mapping[str, int]
    padded_tokens: tuple[int, ...]
    instruction_set: str
    flags: Mapping[str, str]
    taps: tuple[Tap, ...]


class Executor(Protocol):
    """Runs steps on every rank. Calls come in the order begin_run, submit..., end_run."""

    def begin_run(self, *, taps: bool) -> None:
        """Start a fresh account; every earlier step must have been taken."""

    def submit(self, step: ScheduledStep, requests: Mapping[str, PoolingRequest]) -> StepHandle:
        """Queue one step on every rank. Never waits for the device's arithmetic."""

    def abort(self, request_id: str) -> None:
        """Forget what any rank retains of a request."""

    def end_run(self) -> RunAccount:
        """Wait for everything and return the account."""

    def apply_plugin(self, name: str) -> None: ...

    def remove_plugin(self, name: str) -> None: ...

    def close(self) -> None:
        """Release threads, processes and memory. Idempotent."""


__all__ = ["Executor", "PoolingOutput", "RunAccount", "StepPlan"]

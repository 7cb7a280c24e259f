"""A system under test behind one protocol: what the campaign asks of any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from harness.axes import Plan
from harness.case import Case
from harness.judge.output import Array, Output
from harness.record import Json


class Refused(Exception):  # noqa: N818 - a condition of a cell, not a defect
    """The system cannot run in this cell; the message is its own reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """One prompt as the model sees it."""

    token_ids: tuple[int, ...]
    type_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TapRows:
    """Hidden states [count, D] of one prompt after `layer`, from absolute token `start`."""

    prompt: int
    layer: int
    step: int
    start: int
    rows: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRun:
    """What one run of a case returned, in the order of the case's prompts."""

    outputs: tuple[Output, ...]
    plan: Plan
    witness: Mapping[str, Json]
    taps: tuple[TapRows, ...] = field(default=())


class Session(Protocol):
    """One warm instance of a system in one cell under given settings."""

    def run(
        self,
        case: Case,
        prompts: Sequence[Encoded],
        *,
        plan: Plan | None = None,
        taps: bool = False,
    ) -> SystemRun:
        """Run the case. `plan`: replay these steps. Any exception is the system's failure."""


class System(Protocol):
    """A system under test on one checkpoint."""

    @property
    def dtype(self) -> str:
        """dtype the model computes in."""

    def encode(self, case: Case) -> tuple[Encoded, ...]:
        """Token ids of every prompt, by the system's own tokenizer."""

    def open(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        """A warm instance; the same one for the same arguments. Raises Refused."""

    def discard(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> None:
        """Drop an instance that failed, so that the next `open` starts a fresh one."""

    def plant(self, name: str) -> None:
        """Put a plug-in into every instance, open and future."""

    def unplant(self, name: str) -> None:
        """Take it out again."""

    def release(self) -> None:
        """Close every instance; what they share stays loaded."""

    def close(self) -> None:
        """Release everything."""


@runtime_checkable
class Spelling(Protocol):
    """A system that can tell its tokens as text, so that a reader finds a place in a prompt."""

    def spell(self, prompts: Sequence[Encoded]) -> tuple[tuple[str, ...], ...]:
        """Per prompt, the text of each token; empty where it is not known."""
        ...

"""A system under test behind one protocol: all that a campaign asks of any engine.

A system is made by a factory from an `Assignment` (`harness.systems.table` finds it by name) and is
then asked for sessions, one for each cell. What it cannot do it says with `Refused`; what it did
it attests in the witness of every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from harness.axes import Plan
from harness.case import Case
from harness.checkpoints.catalogue import Checkpoint
from harness.judge.output import Array, Output
from harness.record import Json


class Refused(Exception):  # noqa: N818 - a condition of a cell, not a defect
    """The system cannot run in this cell; the message is its own reason."""


class SystemUnavailable(Exception):  # noqa: N818 - nothing is wrong with the system
    """The system cannot be had here, or not with these options; the message says what to do."""


class SystemFailed(Exception):  # noqa: N818 - the system's doing, not ours
    """A run failed by the system's own account, or answered with what is no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a system is to be run on, and within which sizes: the same for every cell."""

    checkpoint: Checkpoint
    folder: Path
    """Hugging Face model folder: `config.json`, safetensors, tokenizer."""
    chunk: int
    """Token budget of a step in a chunked cell."""
    max_num_seqs: int
    max_model_len: int
    block_size: int = 16
    long_prefill_token_threshold: int = 0
    """Most tokens of one prompt in a step; 0: as many as fit."""
    batch_invariant: bool = False
    timeout_s: float = 300.0
    """One case in one cell; beyond it the system counts as hung."""
    dtype: str = "float32"
    settings: tuple[Mapping[str, str], ...] = ()
    """Stream policies and the like that a profile rotates over; only our engine has them."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """The system's own options, passed through as they were given."""


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

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of cases (`harness.case.TASKS`) that it answers on this checkpoint."""

    @property
    def settings(self) -> tuple[Mapping[str, str], ...]:
        """What a campaign rotates over its cases; `({},)` when there is nothing to steer."""

    @property
    def costly(self) -> bool:
        """Whether an instance takes so long to start that every case runs in it before the next."""

    def about(self) -> Mapping[str, str]:
        """Names and versions of what answers, for the run's records."""

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
        """Release everything. May be called twice."""


@runtime_checkable
class Spelling(Protocol):
    """A system that can tell its tokens as text, so that a reader finds a place in a prompt."""

    def spell(self, prompts: Sequence[Encoded]) -> tuple[tuple[str, ...], ...]:
        """Per prompt, the text of each token; empty where it is not known."""
        ...


@runtime_checkable
class Selective(Protocol):
    """A system that tells what it cannot run before it is started."""

    def refusal(self, cell: Mapping[str, str]) -> str | None:
        """Why `open` would refuse the cell on this checkpoint; None: it would not."""
        ...


@runtime_checkable
class Served(Protocol):
    """A system that can also be asked through a server of its own, in this process."""

    @property
    def unserved(self) -> str:
        """Why there is no server to be had; empty when there is."""
        ...

    def serve(self, cell: Mapping[str, str], settings: Mapping[str, str]) -> Session:
        """The same instance's configuration behind its server. Raises Refused as `open` does."""
        ...


Factory = Callable[[Assignment], System]
"""Makes a system. Raises SystemUnavailable."""

"""What was run: the cases, the cells that refused to start, and every execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.record.json_data import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """One generated case."""

    kind: ClassVar[str] = "case"
    case_id: str
    checkpoint: str
    task: str
    case: Mapping[str, Json]
    """`Case.to_json()`."""
    lengths: tuple[int, ...]
    """Tokens of each prompt."""
    boundaries: tuple[str, ...]
    """Boundary classes this case hits, e.g. `length = 1 mod chunk`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEndRecord:
    """Everything of a case has been run and recorded: a resumed run does not run it again."""

    kind: ClassVar[str] = "case_end"
    case_id: str
    checkpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRecord:
    """A cell that cannot be started for a checkpoint, with the system's own reason."""

    kind: ClassVar[str] = "refusal"
    checkpoint: str
    cell: Mapping[str, str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRecord:
    """One case run in one cell under given settings."""

    kind: ClassVar[str] = "execution"
    execution_id: str
    case_id: str
    checkpoint: str
    cell: Mapping[str, str]
    settings: Mapping[str, str]
    """What is not an axis of the lattice: stream_policy, inputs, executor..."""
    plan: Json
    """step -> entry -> [request_id, start, count, total]; None when the system does not tell."""
    plan_digest: str
    witness: Mapping[str, Json]
    outputs: str
    """File name under outputs/, empty on error."""
    output_digest: str
    error: str
    """Empty, or the whole message of what went wrong."""
    seconds: float
    attempt: int = 1

"""What was found out about failures: shrunk, attributed, localised, reproducible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.record.json_data import Json
from harness.record.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRow:
    """One line of a finding's truth table: what this cell does to the shrunk case."""

    cell: Mapping[str, str]
    outcome: Outcome
    value: float | None
    """The finding's metric in this cell."""
    note: str = ""


NO_LAYER = -1
"""Layer of a difference in the answers of a system that tells nothing of its layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """First place two runs differ, aligned by absolute token position."""

    prompt: int
    step: int
    chunk: int
    layer: int
    """0 = embedding output, n = output of block n-1, num_layers + 1 = pooled output; NO_LAYER."""
    token: int
    relative_l2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRecord:
    """Failures that share a signature, shrunk, attributed and reproducible."""

    kind: ClassVar[str] = "finding"
    finding_id: str
    signature: str
    title: str
    checkpoint: str
    task: str
    outcome: Outcome
    case: Mapping[str, Json]
    """The shrunk case."""
    pairs: tuple[str, ...]
    """Ids of every pair with this signature."""
    minimal_sets: tuple[tuple[str, ...], ...]
    """Every minimal failing set, each a tuple of `axis=value`."""
    masked_by: tuple[str, ...]
    """`axis=value`s that hide the failure when added to a failing set."""
    conditions: tuple[str, ...]
    """What else it needs: stream policy it holds under, steps, prompt lengths."""
    truth_table: tuple[TruthRow, ...]
    metric: str
    worst: float
    bound: float | None
    first_divergence: Divergence | None
    token_errors: tuple[tuple[float, ...], ...] = ()
    """Per prompt, relative L2 of each token row at the last common layer, when known."""
    token_cosines: tuple[tuple[float, ...], ...] = ()
    """Per prompt, 1 - cosine of the same rows."""
    layer_errors: tuple[tuple[tuple[float, ...], ...], ...] = ()
    """Per prompt and layer (0 = embedding output), relative L2 of each token's row."""
    token_texts: tuple[tuple[str, ...], ...] = ()
    """Per prompt, the text of each token, when the system can tell."""
    chunk_edges: tuple[tuple[int, ...], ...] = ()
    """Per prompt, the tokens at which its later chunks begin."""
    reproduce: str = ""
    """One command line."""
    in_array: bool = False
    """Its cases ran in a covering array beside the lattice, under the sizes of that share. False
    in older runs, where only a secondary axis in the truth table tells."""
    script: str = ""
    """Stand-alone script, as text."""

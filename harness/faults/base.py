"""What is known of a planted fault. Read after the verdict only (law 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from harness.faults.plant import Apply, Plant, Undo, declared, replace_method

__all__ = ["BASELINE", "Fault", "FaultClass", "Undo", "exposed", "planted", "replace_method"]


class FaultClass(StrEnum):
    """Root causes, as public reports sort themselves."""

    BUFFER = "stale or overwritten buffer, missing order"
    OWNERSHIP = "missing copy: rows that someone else writes"
    STATE = "request, chunk or cache state not advanced, cleared or moved"
    ROWS = "index, length or row-mapping error"
    MASK = "wrong attention mask"
    POSITION = "wrong positions"
    POOLING = "wrong pooling or a missing step after it"
    NORM = "wrong normalisation or activation"
    DTYPE = "precision lost"
    HEAD = "wrong head"
    TOKENS = "wrong token ids"
    COMPILE = "compiler or graph error"
    LINK = "wrong transfer between pipeline stages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Plant):
    """One planted defect: a plug-in on a named seam of the engine.

    `exposed_by` and `masked_by` are what a run is expected to find; no strategy, judge, search,
    attribution or localisation ever reads them.
    """

    kind: FaultClass
    mechanism: str
    sources: tuple[str, ...]
    """Public ids of bugs of this mechanism; empty: our own invention."""
    exposed_by: tuple[frozenset[str], ...]
    """Minimal failing sets of `axis=value`; the empty set: the baseline itself is wrong."""
    conditions: str
    masked_by: tuple[str, ...]
    magnitude: str
    axes: tuple[str, ...] = ()
    """Axes that its cells vary; empty: the four primary ones. A secondary axis acts on demand."""
    equivalent: tuple[tuple[str, str], ...] = ()
    """dtype and why the fault does no more in it than rounding: no defect, and nothing to find."""


BASELINE = frozenset[str]()
"""The set of a fault that shows in every configuration: only a reference can tell."""


def exposed(*sets: str) -> tuple[frozenset[str], ...]:
    """`exposed("chunk=chunked & pp=2", "async=async")`: two minimal sets."""
    return tuple(frozenset(part.strip() for part in values.split("&")) for values in sets)


def planted(
    *,
    name: str,
    kind: FaultClass,
    mechanism: str,
    sources: tuple[str, ...] = (),
    exposed_by: tuple[frozenset[str], ...] = (BASELINE,),
    conditions: str,
    masked_by: tuple[str, ...] = (),
    magnitude: str,
    checkpoint: str = "tiny-qwen3",
    axes: tuple[str, ...] = (),
    equivalent: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Apply], Fault]:
    """Makes `apply(runner) -> undo` a Fault that goes by the function's own place and name."""
    return declared(
        Fault,
        name=name,
        kind=kind,
        mechanism=mechanism,
        sources=sources,
        exposed_by=exposed_by,
        conditions=conditions,
        masked_by=masked_by,
        magnitude=magnitude,
        checkpoint=checkpoint,
        axes=axes,
        equivalent=tuple(equivalent.items()),
    )

"""What a run was asked to do: plain data, so that workers and replays get the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harness.axes import AXES, SECONDARY
from harness.campaign.profile import PROFILES, CheckpointPlan, Profile

OUT_OF_TIME = "its share of the time ended before its cases did; `parity run --resume` goes on"
NOT_FINISHED = "was not finished"
"""What the notices of a run say of what is missing from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One run's request."""

    profile: str
    seed: int
    checkpoints: tuple[str, ...]
    axes: tuple[str, ...]
    plants: tuple[str, ...] = ()
    """Plug-ins (`module:callable`) put into every instance."""
    cases_file: str | None = None
    ledger: str | None = None
    """Rules file whose kept cases are replayed before anything else; None: none."""
    corpus: str | None = None
    """Folder with a corpus for each checkpoint, which runs before drawn cases; None: none."""
    batch_invariant: bool = False
    cover: int = 0
    """Instead of the lattice: cells in which any so many values of the axes occur together."""
    production: Mapping[str, str] = field(default_factory=dict)
    """Instead of the lattice: this configuration, and it with one axis at a time at rest."""
    system: str = "engine"
    """Name in `harness.systems.table`, or `PLACE:FACTORY`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The system's own options."""
    dtype: str = "float32"
    """dtype the system is to compute in."""
    cells: str = ""
    """`lattice` or `alone`; empty: as each checkpoint's plan has it."""
    redact: bool = False
    """Keep prompts out of the records."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Fields of every checkpoint's plan that the run sets otherwise than its profile."""

    def plan(self, name: str) -> CheckpointPlan:
        """The profile's plan for a checkpoint, in the run's own sizes."""
        plan = self.profile_object.plan(name)
        changes: dict[str, Any] = dict(self.sizes)
        if self.cells:
            changes["choice"] = self.cells
        if self.system != "engine":
            changes["shards"] = 1  # a shard would load the system once more
        return replace(plan, **changes)

    def has_array(self, name: str) -> bool:
        """Whether a share of the checkpoint's cases runs in a covering array beside the lattice.

        Not where the request itself says which cells or cases to run.
        """
        chosen = self.cover or self.production or self.cells or self.cases_file
        whole = not chosen and set(self.axes) == set(AXES) and self.system == "engine"
        return whole and self.plan(name).array_cases > 0

    def in_array(self, name: str) -> RunSpec:
        """This request for that share of the checkpoint's cases."""
        plan = self.plan(name)
        sizes = {
            "cases": plan.array_cases,
            "shards": plan.array_shards,
            "array_cases": 0,
            "long_cases": 0,
            "process_cases": 0,
            "whole_lattice_every": 1,
        }
        return replace(
            self,
            axes=(*AXES, *SECONDARY),
            cover=plan.array_strength,
            sizes={**self.sizes, **sizes},
        )

    @property
    def profile_object(self) -> Profile:
        return PROFILES[self.profile]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in data.items()
        }
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One shard of one checkpoint's cases: the unit a worker process is given."""

    checkpoint: str
    shard: int
    num_shards: int
    array: bool = False
    """Of the cases that run in a covering array."""
    done: tuple[str, ...] = ()
    """Ids of cases that are not run again: finished before, or given up."""
    losses: int = 0
    """Worker processes that died or hung on this job."""
    until: float | None = None
    """Unix time after which no further case is begun."""
    corpus: bool = False
    """Its cases are those of the corpus, not the run's own."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        return cls(**{**data, "done": tuple(data["done"])})

    @property
    def label(self) -> str:
        part = f" {self.shard + 1}/{self.num_shards}" if self.num_shards > 1 else ""
        kind = " array" if self.array else " corpus" if self.corpus else ""
        return f"{self.checkpoint}{kind}{part}"

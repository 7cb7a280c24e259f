"""Everything about a run that is known when it starts: one object, in `run.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.record.json_data import Json
from harness.record.outcome import Tier

FORMAT_VERSION = 1
"""Raised when an older reader could no longer understand what is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisInfo:
    """An axis as the report shows it."""

    name: str
    values: tuple[str, ...]
    baseline: str
    tier: Tier
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A model the run used."""

    name: str
    kind: str
    """decoder or encoder"""
    origin: str
    """generated or fetched"""
    dtype: str
    digest: str
    num_parameters: int
    num_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryInfo:
    """The words of a scenario that a run tells; its figures are the run's own."""

    name: str
    title: str
    user: str
    """Who meets it, and what they ran."""
    suites: str
    """What the test suites saw that let it through."""
    cause: str
    lesson: str
    """What has to be compared for it to be seen."""
    sources: tuple[str, ...] = ()
    """Public ids of reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """Everything about a run that is known when it starts."""

    run_id: str
    created: str
    """UTC, ISO 8601."""
    command: tuple[str, ...]
    """Replays the whole run."""
    seed: int
    profile: str
    settings: Mapping[str, Json]
    environment: Mapping[str, str]
    axes: tuple[AxisInfo, ...]
    checkpoints: tuple[CheckpointInfo, ...]
    plants: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    commit: str = ""
    """Of the checkout it was run in, with `+` where files differ from it; empty outside one."""
    story: StoryInfo | None = None
    """Of `parity scenario`."""
    format_version: int = FORMAT_VERSION

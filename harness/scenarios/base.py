"""A scenario: what a user met, the faults that bring it back, and the run that shows it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from harness.record import StoryInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Words from a file, and what to run for the figures."""

    name: str
    number: int
    """In the list of user stories that it comes from."""
    title: str
    user: str
    suites: str
    cause: str
    lesson: str
    sources: tuple[str, ...]
    plants: tuple[str, ...]
    """Faults of the catalogue."""
    axes: tuple[str, ...]
    """Switches that the user has, in the order in which the story names them."""
    checkpoint: str = "tiny-qwen3"
    upgrade: bool = False
    """The engine as it is runs first: the version before."""

    @property
    def info(self) -> StoryInfo:
        """The words, for the run's manifest."""
        return StoryInfo(
            name=self.name,
            title=self.title,
            user=self.user,
            suites=self.suites,
            cause=self.cause,
            lesson=self.lesson,
            sources=self.sources,
        )


def read_scenario(path: Path) -> Scenario:
    """The story in a file, named after it. ValueError names a key that is wrong or missing."""
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Scenario)} - {"name"}
    if unknown := sorted(set(data) - known):
        raise ValueError(f"{path}: unknown {', '.join(unknown)}; valid: {', '.join(sorted(known))}")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else _one_line(value)
        for key, value in data.items()
    }
    try:
        return Scenario(name=path.stem, **values)
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from error


def _one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value

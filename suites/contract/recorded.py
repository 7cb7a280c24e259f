"""The recorded runs that every form of a report is written from, hostile text among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reports.load import Run, load_run
from suites.unit.reports.fixtures import (
    clean_run,
    empty_run,
    failing_run,
    hostile_run,
    interrupted_run,
)
from suites.unit.reports.parts import RecordedRun

RUNS: dict[str, Callable[[], RecordedRun]] = {
    "clean": lambda: clean_run(num_cases=2),
    "failing": lambda: failing_run(num_cases=3),
    "interrupted": interrupted_run,
    "empty": empty_run,
    "hostile": hostile_run,
}
ACTING = set("\x00\x07\x1b\u202e")
"""Characters that do something to a terminal or to the order of what is read."""


def written_and_loaded(folder: Path) -> dict[str, Run]:
    """Name of a run -> the run, written to `folder` and read back."""
    return {name: load_run(make().write(folder / name)) for name, make in RUNS.items()}

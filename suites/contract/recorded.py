"""The recorded runs that every form of a report is written from, hostile text among them."""

from __future__ import annotations

from pathlib import Path

from reports.load import Run, load_run
from suites.unit.reports.fixtures import every_kind

RUNS = every_kind(clean=2, failing=3)
ACTING = set("\x00\x07\x1b\u202e")
"""Characters that do something to a terminal or to the order of what is read."""


def written_and_loaded(folder: Path) -> dict[str, Run]:
    """Name of a run -> the run, written to `folder` and read back."""
    return {name: load_run(make().write(folder / name)) for name, make in RUNS.items()}

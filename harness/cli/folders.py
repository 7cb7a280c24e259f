"""Where runs are kept and how one is named on the command line."""

from __future__ import annotations

import os
from pathlib import Path

from harness.cli.errors import UsageError


def home() -> Path:
    """`.parity` in the working folder, or PARITY_HOME."""
    return Path(os.environ.get("PARITY_HOME", ".parity"))


def runs_root() -> Path:
    """Where runs are kept."""
    return home() / "runs"


def run_folder(name: str | None) -> Path:
    """A run by id, by path, or the newest. UsageError lists the runs there are."""
    root = runs_root()
    known = sorted(p.parent for p in root.glob("*/run.json")) if root.exists() else []
    if name is None:
        if not known:
            raise UsageError(f"there is no run under {root}; start one with `parity run`")
        return max(known, key=lambda folder: (folder / "run.json").stat().st_mtime)
    for candidate in (Path(name), root / name):
        if (candidate / "run.json").exists():
            return candidate
    raise UsageError(
        f"no run {name!r}; runs under {root}: {', '.join(p.name for p in known[-10:]) or 'none'}"
    )

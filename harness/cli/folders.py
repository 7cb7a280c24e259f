"""Where runs are kept and how one is named on the command line."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

from harness.cli.errors import UsageError
from harness.record import RecordError, RunManifest, read_manifest


def home() -> Path:
    """`.parity` in the working folder, or PARITY_HOME."""
    return Path(os.environ.get("PARITY_HOME", ".parity"))


def runs_root() -> Path:
    """Where runs are kept."""
    return home() / "runs"


def corpus_root() -> Path:
    """Where `parity search` keeps hard cases, a file a checkpoint."""
    return home() / "corpus"


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


def earlier_runs(folder: Path, manifest: RunManifest, limit: int) -> list[Path]:
    """The newest runs beside `folder` of the same profile that began before it, oldest first."""
    found: list[tuple[str, Path]] = []
    for other in folder.resolve().parent.glob("*/run.json"):
        try:
            theirs = read_manifest(other.parent)
        except (RecordError, OSError):
            continue  # a run that cannot be read is no part of a history
        if theirs.profile == manifest.profile and theirs.created < manifest.created:
            found.append((theirs.created, other.parent))
    return [path for _, path in sorted(found)[-limit:]] if limit else []


def new_run_id() -> str:
    """Sorts by time; the suffix keeps two runs of one second apart."""
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)

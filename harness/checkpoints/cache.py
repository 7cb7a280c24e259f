"""A folder of published checkpoints, outside the repository.

An entry is one model folder, `ROOT/checkpoints/KEY/NAME/`, where KEY is the hash of the recipe that
made it. It appears all at once: files are built in a private folder, hashed into
`parity-manifest.json`, flushed to disk and renamed into place under a per-entry lock. An entry
whose files do not match its manifest is reported and rebuilt: nobody ever reads half a checkpoint.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ENVIRONMENT_VARIABLE = "PARITY_CACHE"
MANIFEST = "parity-manifest.json"

Build = Callable[[Path], None]
"""Writes every file of a checkpoint under the (empty) folder it is given."""

Say = Callable[[str], None]
"""Takes one line of progress for a person to read."""


def silent(_line: str) -> None:
    """The `Say` of a caller that wants no progress."""


def cache_root() -> Path:
    """Where everything expensive is kept: `$PARITY_CACHE`, else `~/.cache/pooling-parity`."""
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "pooling-parity"


@dataclass(slots=True, kw_only=True)
class CheckpointCache:
    """Publishes checkpoint folders and vouches for them.

    Owns: every file under `root / "checkpoints"`.
    """

    root: Path = field(default_factory=cache_root)
    _vouched: set[Path] = field(default_factory=set)

    def path(self, name: str, recipe: str) -> Path:
        """The folder where checkpoint `name` made by `recipe` is, or would be, published."""
        key = hashlib.sha256(recipe.encode()).hexdigest()[:12]
        return self.root / "checkpoints" / key / name

    def holds(self, name: str, recipe: str) -> bool:
        """Whether an intact entry is there; hashes its files the first time it is asked."""
        return self._vouch(self.path(name, recipe)) is None

    def entry(self, name: str, recipe: str, build: Build, say: Say = silent) -> Path:
        """The folder of an intact entry, built first if absent or damaged.

        `recipe` is any text that changes whenever the files `build` writes would change.
        """
        folder = self.path(name, recipe)
        if self._vouch(folder) is None:
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f".{name}.lock"):
            complaint = self._vouch(folder)  # another process may have built it while we waited
            if complaint is None:
                return folder
            if folder.exists():
                say(f"checkpoint {name}: rebuilding {folder}: {complaint}")
                shutil.rmtree(folder)
            else:
                say(f"checkpoint {name}: building {folder}")
            _publish(folder, build)
        self._vouched.add(folder)
        return folder

    def _vouch(self, folder: Path) -> str | None:
        """None if `folder` is intact, else what is wrong; hashed once per process."""
        if folder in self._vouched and folder.is_dir():
            return None
        complaint = damage(folder)
        if complaint is None:
            self._vouched.add(folder)
        else:
            self._vouched.discard(folder)
        return complaint


def damage(folder: Path) -> str | None:
    """What is wrong with a published folder, or None if every file matches its hash."""
    try:
        promised = manifest(folder)
    except FileNotFoundError:
        return "it has no manifest, so it was never finished" if folder.exists() else "it is absent"
    except ValueError as error:
        return f"its manifest cannot be read ({error})"
    present = {relative for relative in _files(folder) if relative != MANIFEST}
    for relative, digest in promised.items():
        if relative not in present:
            return f"{relative} is missing"
        found = sha256_of(folder / relative)
        if found != digest:
            return f"{relative} has sha256 {found[:12]}..., expected {digest[:12]}..."
    unexpected = sorted(present - promised.keys())
    return f"unexpected files {unexpected}" if unexpected else None


def manifest(folder: Path) -> dict[str, str]:
    """The sha256 of every file of a published checkpoint, by path relative to `folder`."""
    document = json.loads((folder / MANIFEST).read_text())
    files = document.get("files") if isinstance(document, dict) else None
    if not isinstance(files, dict):
        raise ValueError("expected 'files' to map paths to sha256")
    return {str(relative): str(digest) for relative, digest in files.items()}


def sha256_of(file: Path) -> str:
    """Hexadecimal sha256 of a file's bytes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def weights_sha256(folder: Path) -> str:
    """Hexadecimal sha256 of a model's weights, from its manifest if it has one, else hashed now."""
    if (folder / MANIFEST).exists():
        return manifest(folder)["model.safetensors"]
    return sha256_of(folder / "model.safetensors")


def _publish(folder: Path, build: Build) -> None:
    prefix = f".{folder.name}.building-"
    for abandoned in folder.parent.glob(prefix + "*"):  # we hold the lock: their builders died
        shutil.rmtree(abandoned)
    draft = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        build(draft)
        files = {relative: sha256_of(draft / relative) for relative in _files(draft)}
        (draft / MANIFEST).write_text(json.dumps({"files": files}, indent=1, sort_keys=True) + "\n")
        for relative in [*files, MANIFEST]:
            _flush(draft / relative)
        draft.chmod(0o755)  # mkdtemp made it private to this user
        _flush(draft)
        draft.rename(folder)
        _flush(folder.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # released when the stream closes, also on a crash
        yield

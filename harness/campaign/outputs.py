"""Outputs on disk, one safetensors file per distinct content, named by its digest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from harness.judge.output import Array, Output
from harness.record import RecordError


class OutputStore:
    """Owns: the `outputs/` folder of a run. Written atomically; equal outputs share a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "outputs"
        self._folder.mkdir(parents=True, exist_ok=True)

    def write(self, outputs: Sequence[Output]) -> tuple[str, str]:
        """Store one output per prompt; returns (file name, digest)."""
        blob = save({str(index): output.data for index, output in enumerate(outputs)})
        digest = hashlib.sha256(blob).hexdigest()[:24]
        path = self._folder / f"{digest}.safetensors"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_bytes(blob)
            part.replace(path)
        return path.name, digest

    def read(self, name: str) -> tuple[Output, ...]:
        """Inverse of `write`. RecordError for a missing or damaged file."""
        path = self._folder / name
        try:
            arrays = load_file(path)
        except (OSError, SafetensorError) as error:
            raise RecordError(f"{path} cannot be read: {error}") from error
        return tuple(_output(arrays[str(index)]) for index in range(len(arrays)))


def _output(array: Array) -> Output:
    """Nothing but bfloat16 is held as uint16."""
    return Output.of(array, "bfloat16" if array.dtype == np.uint16 else None)

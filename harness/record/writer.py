"""Writes a run folder while the run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from harness.record.json_data import Json, to_json
from harness.record.kinds import Record
from harness.record.manifest import RunManifest


class RunWriter:
    """Owns: one run folder while it is written. Append-only; every line is flushed when known."""

    def __init__(self, folder: Path, manifest: RunManifest) -> None:
        self.folder = folder
        (folder / "outputs").mkdir(parents=True, exist_ok=True)
        part = folder / "run.json.part"
        part.write_text(json.dumps(to_json(manifest), indent=1, allow_nan=False), encoding="utf-8")
        part.replace(folder / "run.json")
        self._lines = (folder / "records.jsonl").open("ab")

    @classmethod
    def reopen(cls, folder: Path, manifest: RunManifest, kept: Iterable[Record]) -> RunWriter:
        """Go on with a run that ended early, from the records that are `kept` of it.

        The old file stays until the new one is whole and on disk.
        """
        part = folder / "records.jsonl.part"
        with part.open("wb") as lines:
            lines.writelines(_line(to_json(record)) for record in kept)
            lines.flush()
            os.fsync(lines.fileno())
        part.replace(folder / "records.jsonl")
        return cls(folder, manifest)

    def append(self, record: Record) -> None:
        """Write one record as one line and hand it to the operating system at once."""
        self._lines.write(_line(to_json(record)))
        self._lines.flush()

    def close(self) -> None:
        self._lines.close()


def _line(data: Json) -> bytes:
    try:
        text = json.dumps(data, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        # Half of a surrogate pair is no character and has no UTF-8; JSON's escape can carry it.
        text = json.dumps(data, allow_nan=False, ensure_ascii=True).encode("ascii")
    return text + b"\n"

"""Reads a run folder, line by line, a killed run's too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.record.json_data import RecordError
from harness.record.kinds import Record, manifest_from_json, record_from_json
from harness.record.manifest import RunManifest


def read_manifest(folder: Path) -> RunManifest:
    """The manifest of a run. Raises RecordError when it is missing or unreadable."""
    path = folder / "run.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecordError(f"{folder} holds no run.json: not a run folder") from error
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    return manifest_from_json(data)


def read_records(folder: Path) -> Iterator[Record]:
    """Records of a run in order. A torn last line (killed run) is dropped, others are errors."""
    path = folder / "records.jsonl"
    if not path.exists():
        raise RecordError(f"{folder} holds no records.jsonl: not a run folder")
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise RecordError(f"{path} line {number} is not JSON: {error}") from error
        yield record_from_json(data)

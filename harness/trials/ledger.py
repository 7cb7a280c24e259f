"""Results of trials, one JSON line each, flushed as they come: a trial that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.record import RecordError


class Ledger:
    """Owns: one file of results, appended to and never rewritten."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows = list(_read(path)) if path.exists() else []

    @property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self._rows)

    def holds(self, **key: object) -> bool:
        """Whether a result with these values is there already."""
        return self.find(**key) is not None

    def find(self, **key: object) -> Mapping[str, Any] | None:
        """The first result with these values, if there is one."""
        matching = (r for r in self._rows if all(r.get(k) == v for k, v in key.items()))
        return next(matching, None)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one result at once."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        self._rows.append(dict(row))


def _read(path: Path) -> Iterator[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except ValueError as error:
            if number == len(lines):
                # The last line of a killed trial: its newline, and so its result, never arrived.
                path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
                return
            raise RecordError(f"{path} line {number} is not JSON: {error}") from error

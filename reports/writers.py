"""Every form a run can be written in: one table, from a name to its writer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.html import render
from reports.junit import junit
from reports.load import Run
from reports.markdown import markdown
from reports.tables import write_csv, write_parquet
from reports.view.changes import Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One form: the file (or folder) it is written to, and what writes it."""

    name: str
    file: str
    """Its usual name, never made of recorded text: a run cannot choose where it is written."""
    meaning: str
    write: Callable[[Run, Path, Changes | None], Path]


def _html(run: Run, path: Path, changes: Changes | None) -> Path:
    return render(run, path, changes)


def _junit(run: Run, path: Path, changes: Changes | None) -> Path:
    del changes  # a server keeps its own history of tests
    return _whole(path, junit(run))


def _markdown(run: Run, path: Path, changes: Changes | None) -> Path:
    return _whole(path, markdown(run, changes).encode("utf-8"))


def _csv(run: Run, path: Path, changes: Changes | None) -> Path:
    del changes
    write_csv(run, path)
    return path


def _parquet(run: Run, path: Path, changes: Changes | None) -> Path:
    del changes
    write_parquet(run, path)
    return path


def _whole(path: Path, content: bytes) -> Path:
    """A reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


FORMATS: Mapping[str, Format] = {
    f.name: f
    for f in (
        Format(name="html", file="report.html", meaning="one offline page", write=_html),
        Format(name="markdown", file="summary.md", meaning="a job's summary", write=_markdown),
        Format(name="junit", file="junit.xml", meaning="tests for a CI server", write=_junit),
        Format(name="csv", file="tables", meaning="a folder of tables", write=_csv),
        Format(name="parquet", file="tables", meaning="the same, typed", write=_parquet),
    )
}

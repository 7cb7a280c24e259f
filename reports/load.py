"""Reads a run folder into memory, indexed; a killed run loads as far as it got.

Errors: `harness.record.RecordError` for a folder that is no run or holds unreadable records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.record import (
    CaseRecord,
    DeclaredRecord,
    DriftRecord,
    EndRecord,
    ExecutionRecord,
    FindingRecord,
    Json,
    NoticeRecord,
    PairRecord,
    PowerRecord,
    Record,
    RefusalRecord,
    ReplayRecord,
    RunManifest,
    read_manifest,
    read_records,
)

R = TypeVar("R", bound=Record)
KILL_MATRIX = "kill_matrix.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recorded run. Keys are the records' own ids; tuples keep the order of the file."""

    manifest: RunManifest
    cases: Mapping[tuple[str, str], CaseRecord]
    """(checkpoint, case id) -> case: one case may be asked of several checkpoints."""
    refusals: tuple[RefusalRecord, ...] = ()
    declared: tuple[DeclaredRecord, ...] = ()
    executions: Mapping[str, ExecutionRecord]
    powers: tuple[PowerRecord, ...] = ()
    pairs: tuple[PairRecord, ...] = ()
    drifts: tuple[DriftRecord, ...] = ()
    findings: tuple[FindingRecord, ...] = ()
    replays: tuple[ReplayRecord, ...] = ()
    """What was known before, and what became of it."""
    notices: tuple[str, ...] = ()
    """The manifest's notices, then those recorded on the way."""
    end: EndRecord | None = None
    kills: Json = None
    """What `parity faults` left in the folder: which planted faults were found."""

    @property
    def interrupted(self) -> bool:
        """The run was killed: it never wrote its end record."""
        return self.end is None


def load_run(folder: Path) -> Run:
    """Read `run.json` and `records.jsonl`; outputs stay on disk. Raises RecordError."""
    manifest = read_manifest(folder)
    records = list(read_records(folder))

    def of(cls: type[R]) -> tuple[R, ...]:
        return tuple(record for record in records if isinstance(record, cls))

    ends = of(EndRecord)
    return Run(
        manifest=manifest,
        cases={(c.checkpoint, c.case_id): c for c in of(CaseRecord)},
        refusals=of(RefusalRecord),
        declared=of(DeclaredRecord),
        executions={e.execution_id: e for e in of(ExecutionRecord)},
        powers=of(PowerRecord),
        pairs=of(PairRecord),
        drifts=of(DriftRecord),
        findings=of(FindingRecord),
        replays=of(ReplayRecord),
        notices=(*manifest.notices, *(n.text for n in of(NoticeRecord))),
        end=ends[-1] if ends else None,
        kills=_kills(folder / KILL_MATRIX),
    )


def _kills(path: Path) -> Json:
    """None where there is none; it is no part of the run, so a bad one is no error of the run."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None

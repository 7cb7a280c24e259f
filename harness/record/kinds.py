"""The kinds of line in `records.jsonl`, and how one is told from another."""

from __future__ import annotations

from collections.abc import Mapping

from harness.record.declared import DeclaredRecord
from harness.record.decoding import build
from harness.record.drift import DriftRecord
from harness.record.execution import (
    CaseEndRecord,
    CaseRecord,
    ExecutionRecord,
    RefusalRecord,
)
from harness.record.finding import FindingRecord
from harness.record.json_data import Json, RecordError
from harness.record.known import KnownCase, ReplayRecord
from harness.record.manifest import FORMAT_VERSION, RunManifest
from harness.record.pair import PairRecord, PowerRecord
from harness.record.progress import EndRecord, NoticeRecord
from harness.record.relation import RelationRecord

Record = (
    CaseRecord
    | CaseEndRecord
    | RefusalRecord
    | DeclaredRecord
    | ExecutionRecord
    | RelationRecord
    | PowerRecord
    | PairRecord
    | DriftRecord
    | FindingRecord
    | ReplayRecord
    | NoticeRecord
    | EndRecord
)

RECORD_TYPES: Mapping[str, type[Record]] = {
    record.kind: record
    for record in (
        CaseRecord,
        CaseEndRecord,
        RefusalRecord,
        DeclaredRecord,
        ExecutionRecord,
        RelationRecord,
        PowerRecord,
        PairRecord,
        DriftRecord,
        FindingRecord,
        ReplayRecord,
        NoticeRecord,
        EndRecord,
    )
}


def record_from_json(data: Json) -> Record:
    """Inverse of `to_json` for one line of records.jsonl. Raises RecordError."""
    if not isinstance(data, Mapping):
        raise RecordError(f"a record is a JSON object, got {type(data).__name__}")
    cls = RECORD_TYPES.get(str(data.get("kind")))
    if cls is None:
        raise RecordError(
            f"unknown record kind {data.get('kind')!r}; known: {sorted(RECORD_TYPES)}"
        )
    record: Record = build(cls, data)
    return record


def manifest_from_json(data: Json) -> RunManifest:
    """Inverse of `to_json` for run.json. Raises RecordError on another format version."""
    version = data.get("format_version") if isinstance(data, Mapping) else None
    if version != FORMAT_VERSION:
        raise RecordError(
            f"run.json has format_version={version!r}; this version reads {FORMAT_VERSION}. "
            "Read it with the version that wrote it, or run again."
        )
    manifest: RunManifest = build(RunManifest, data)
    return manifest


def known_case_from_json(data: Json) -> KnownCase:
    """Inverse of `to_json` for a file beside the ledger. Raises RecordError."""
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if kind != KnownCase.kind:
        raise RecordError(
            f"expected a JSON object of kind {KnownCase.kind!r}, as `parity known add` writes it; "
            f"got kind {kind!r}"
        )
    case: KnownCase = build(KnownCase, data)
    return case

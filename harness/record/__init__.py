"""What a run leaves behind: plain, frozen, versioned data (law 7). Standard library only.

A run is a folder: `run.json` (one `RunManifest`), `records.jsonl` (one record a line, appended and
flushed as soon as it is known, so a kill loses at most the line being written) and
`outputs/*.safetensors`. Reports and re-judging read these files and nothing else.

This package is the public face; its modules hold one noun each.
"""

from __future__ import annotations

from harness.record.declared import DeclaredRecord
from harness.record.drift import DriftRecord
from harness.record.execution import (
    CaseEndRecord,
    CaseRecord,
    ExecutionRecord,
    RefusalRecord,
)
from harness.record.finding import NO_LAYER, Divergence, FindingRecord, TruthRow
from harness.record.json_data import Json, RecordError, to_json
from harness.record.kinds import (
    RECORD_TYPES,
    Record,
    known_case_from_json,
    manifest_from_json,
    record_from_json,
)
from harness.record.known import NO_CASE, KnownCase, ReplayRecord, Source
from harness.record.manifest import FORMAT_VERSION, AxisInfo, CheckpointInfo, RunManifest, StoryInfo
from harness.record.outcome import Comparison, Expectation, Outcome, Tier, exit_code
from harness.record.pair import Measurement, PairRecord, PowerRecord
from harness.record.progress import EndRecord, NoticeRecord
from harness.record.reader import read_manifest, read_records
from harness.record.relation import Match, RelationRecord
from harness.record.writer import RunWriter

__all__ = [
    "FORMAT_VERSION",
    "NO_CASE",
    "NO_LAYER",
    "RECORD_TYPES",
    "AxisInfo",
    "CaseEndRecord",
    "CaseRecord",
    "CheckpointInfo",
    "Comparison",
    "DeclaredRecord",
    "Divergence",
    "DriftRecord",
    "EndRecord",
    "ExecutionRecord",
    "Expectation",
    "FindingRecord",
    "Json",
    "KnownCase",
    "Match",
    "Measurement",
    "NoticeRecord",
    "Outcome",
    "PairRecord",
    "PowerRecord",
    "Record",
    "RecordError",
    "RefusalRecord",
    "RelationRecord",
    "ReplayRecord",
    "RunManifest",
    "RunWriter",
    "Source",
    "StoryInfo",
    "Tier",
    "TruthRow",
    "exit_code",
    "known_case_from_json",
    "manifest_from_json",
    "read_manifest",
    "read_records",
    "record_from_json",
    "to_json",
]

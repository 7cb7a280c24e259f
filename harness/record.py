"""What a run leaves behind: plain, frozen, versioned data (law 7). Standard library only.

A run is a folder: `run.json` (one `RunManifest`), `records.jsonl` (one record a line, appended and
flushed as soon as it is known, so a kill loses at most the line being written) and
`outputs/*.safetensors`. Reports and re-judging read these files and nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

FORMAT_VERSION = 1

Json = Any
"""A value made of dict, list, str, int, float, bool and None only."""


class Outcome(StrEnum):
    """The five ways a comparison can end."""

    PASS = "PASS"
    FAIL = "FAIL"
    ERROR = "ERROR"
    """A side crashed, hung or was refused, or the pair cannot attest what it must share."""
    VACUOUS = "VACUOUS"
    """An axis should have acted and did not, nothing was compared, or the model is blind."""
    INAPPLICABLE = "INAPPLICABLE"
    """Known from case and plan before the run: the axis cannot act on this case."""


class Tier(StrEnum):
    """How close two runs must be (design: judge)."""

    EXACT = "exact"
    REORDERED = "reordered"
    KERNEL = "kernel"


class Comparison(StrEnum):
    """Which two runs a pair compares."""

    BASELINE = "baseline"
    """A cell against the lattice's baseline cell."""
    EDGE = "edge"
    """Two cells one axis apart."""
    SETTING = "setting"
    """The same cell under another stream policy, input buffer or executor."""
    ORACLE = "oracle"
    """The baseline cell against the float64 oracle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One number of a comparison, its bound (None: informative only) and where that comes from."""

    metric: str
    value: float
    bound: float | None = None
    unit: str = ""
    why: str = ""

    @property
    def exceeded(self) -> bool:
        """NaN never counts as within a bound."""
        return self.bound is not None and not self.value <= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisInfo:
    """An axis as the report shows it."""

    name: str
    values: tuple[str, ...]
    baseline: str
    tier: Tier
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A model the run used."""

    name: str
    kind: str
    """decoder or encoder"""
    origin: str
    """generated or fetched"""
    dtype: str
    digest: str
    num_parameters: int
    num_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """Everything about a run that is known when it starts."""

    run_id: str
    created: str
    """UTC, ISO 8601."""
    command: tuple[str, ...]
    """Replays the whole run."""
    seed: int
    profile: str
    settings: Mapping[str, Json]
    environment: Mapping[str, str]
    axes: tuple[AxisInfo, ...]
    checkpoints: tuple[CheckpointInfo, ...]
    plants: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """One generated case."""

    kind: ClassVar[str] = "case"
    case_id: str
    checkpoint: str
    task: str
    case: Mapping[str, Json]
    """`Case.to_json()`."""
    lengths: tuple[int, ...]
    """Tokens of each prompt."""
    boundaries: tuple[str, ...]
    """Boundary classes this case hits, e.g. `length = 1 mod chunk`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRecord:
    """A cell that cannot be started for a checkpoint, with the system's own reason."""

    kind: ClassVar[str] = "refusal"
    checkpoint: str
    cell: Mapping[str, str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRecord:
    """One case run in one cell under given settings."""

    kind: ClassVar[str] = "execution"
    execution_id: str
    case_id: str
    checkpoint: str
    cell: Mapping[str, str]
    settings: Mapping[str, str]
    """What is not an axis of the lattice: stream_policy, inputs, executor..."""
    plan: Json
    """step -> entry -> [request_id, start, count, total]; None when the system does not tell."""
    plan_digest: str
    witness: Mapping[str, Json]
    outputs: str
    """File name under outputs/, empty on error."""
    output_digest: str
    error: str
    """Empty, or the whole message of what went wrong."""
    seconds: float
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRecord:
    """Proof that a case's baseline output moves when its input does."""

    kind: ClassVar[str] = "power"
    case_id: str
    checkpoint: str
    movements: tuple[Measurement, ...]
    """Relative movement for each perturbation; bound = what blindness would look like."""
    blind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRecord:
    """One judged comparison of two executions of the same case."""

    kind: ClassVar[str] = "pair"
    pair_id: str
    case_id: str
    checkpoint: str
    task: str
    comparison: Comparison
    axes: tuple[str, ...]
    """Names of the axes the two sides declare to differ in."""
    a: str
    """Execution id of the reference side (`oracle` for the oracle)."""
    b: str
    cell_a: Mapping[str, str]
    cell_b: Mapping[str, str]
    settings: Mapping[str, str]
    """Settings of side b."""
    tier: Tier
    outcome: Outcome
    reason: str
    """One sentence a person can act on; empty for a plain PASS."""
    num_compared: int
    """Elements compared. PASS with 0 does not construct."""
    measurements: tuple[Measurement, ...] = ()
    warnings: tuple[str, ...] = ()
    worst_prompt: int | None = None
    """Index of the prompt with the largest error."""

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASS and self.num_compared < 1:
            raise ValueError(
                f"pair {self.pair_id}: PASS needs at least one compared element, got "
                f"num_compared={self.num_compared}; use VACUOUS"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRow:
    """One line of a finding's truth table: what this cell does to the shrunk case."""

    cell: Mapping[str, str]
    outcome: Outcome
    value: float | None
    """The finding's metric in this cell."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """First place two runs differ, aligned by absolute token position."""

    prompt: int
    step: int
    chunk: int
    layer: int
    """0 = embedding output, n = output of block n-1, num_layers + 1 = pooled output."""
    token: int
    relative_l2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRecord:
    """Failures that share a signature, shrunk, attributed and reproducible."""

    kind: ClassVar[str] = "finding"
    finding_id: str
    signature: str
    title: str
    checkpoint: str
    task: str
    outcome: Outcome
    case: Mapping[str, Json]
    """The shrunk case."""
    pairs: tuple[str, ...]
    """Ids of every pair with this signature."""
    minimal_sets: tuple[tuple[str, ...], ...]
    """Every minimal failing set, each a tuple of `axis=value`."""
    masked_by: tuple[str, ...]
    """`axis=value`s that hide the failure when added to a failing set."""
    conditions: tuple[str, ...]
    """What else it needs: stream policy it holds under, steps, prompt lengths."""
    truth_table: tuple[TruthRow, ...]
    metric: str
    worst: float
    bound: float | None
    first_divergence: Divergence | None
    token_errors: tuple[tuple[float, ...], ...] = ()
    """Per prompt, relative L2 of each token row at the last common layer, when known."""
    chunk_edges: tuple[tuple[int, ...], ...] = ()
    reproduce: str = ""
    """One command line."""
    script: str = ""
    """Stand-alone script, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRecord:
    """Something the reader must know: a checkpoint that could not be fetched, a budget reached."""

    kind: ClassVar[str] = "notice"
    text: str
    detail: str = ""
    """For whoever debugs, such as a traceback; reports leave it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRecord:
    """Last line of a run that was not killed."""

    kind: ClassVar[str] = "end"
    finished: str
    exit_code: int
    counts: Mapping[str, int]
    """Outcome -> pairs."""
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    """Where the time went: engine, oracle, power, start-up, judge, records."""


Record = (
    CaseRecord
    | RefusalRecord
    | ExecutionRecord
    | PowerRecord
    | PairRecord
    | FindingRecord
    | NoticeRecord
    | EndRecord
)

RECORD_TYPES: Mapping[str, type[Record]] = {
    record.kind: record
    for record in (
        CaseRecord,
        RefusalRecord,
        ExecutionRecord,
        PowerRecord,
        PairRecord,
        FindingRecord,
        NoticeRecord,
        EndRecord,
    )
}

_NESTED: Mapping[str, type] = {
    "axes:RunManifest": AxisInfo,
    "checkpoints:RunManifest": CheckpointInfo,
    "movements:PowerRecord": Measurement,
    "measurements:PairRecord": Measurement,
    "truth_table:FindingRecord": TruthRow,
    "first_divergence:FindingRecord": Divergence,
}
_ENUMS: Mapping[str, type[StrEnum]] = {
    "tier": Tier,
    "outcome": Outcome,
    "comparison": Comparison,
}


class RecordError(ValueError):
    """A record file holds something this version cannot read."""


def to_json(value: Json) -> Json:
    """A record as JSON data. NaN and infinities become the strings "nan", "inf", "-inf"."""
    if hasattr(value, "__dataclass_fields__"):
        data = {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
        kind = getattr(type(value), "kind", None)
        return {"kind": kind, **data} if kind else data
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def _build(cls: type, data: Mapping[str, Json]) -> Json:
    known = {f.name: f for f in fields(cls)}
    unknown = sorted(set(data) - set(known) - {"kind"})
    if unknown:
        raise RecordError(f"{cls.__name__} has no field {unknown}; known fields: {sorted(known)}")
    values: dict[str, Json] = {}
    for name, value in data.items():
        if name == "kind" and name not in known:
            continue  # the tag of a record's line; a checkpoint has a field of that name
        nested = _NESTED.get(f"{name}:{cls.__name__}")
        annotation = str(known[name].type)
        if nested is not None and value is not None:
            value = (
                tuple(_build(nested, item) for item in value)
                if isinstance(value, list)
                else _build(nested, value)
            )
        elif name in _ENUMS and isinstance(value, str):
            value = _ENUMS[name](value)
        elif isinstance(value, list):
            value = value if annotation == "Json" else _tuple(value)
        elif annotation.startswith("float") and isinstance(value, str | int):
            value = float(value)
        values[name] = value
    return cls(**values)


def _tuple(value: Json) -> Json:
    return tuple(_tuple(item) for item in value) if isinstance(value, list) else _number(value)


def _number(value: Json) -> Json:
    return float(value) if value in ("nan", "inf", "-inf") else value


def record_from_json(data: Mapping[str, Json]) -> Record:
    """Inverse of `to_json` for one line of records.jsonl. Raises RecordError."""
    cls = RECORD_TYPES.get(str(data.get("kind")))
    if cls is None:
        raise RecordError(
            f"unknown record kind {data.get('kind')!r}; known: {sorted(RECORD_TYPES)}"
        )
    record: Record = _build(cls, data)
    return record


def manifest_from_json(data: Mapping[str, Json]) -> RunManifest:
    """Inverse of `to_json` for run.json. Raises RecordError on another format version."""
    version = data.get("format_version")
    if version != FORMAT_VERSION:
        raise RecordError(
            f"run.json has format_version={version!r}; this version reads {FORMAT_VERSION}. "
            "Read it with the version that wrote it, or run again."
        )
    manifest: RunManifest = _build(RunManifest, data)
    return manifest


class RunWriter:
    """Owns: one run folder while it is written. Append-only; every line is flushed when known."""

    def __init__(self, folder: Path, manifest: RunManifest) -> None:
        self.folder = folder
        (folder / "outputs").mkdir(parents=True, exist_ok=True)
        part = folder / "run.json.part"
        part.write_text(json.dumps(to_json(manifest), indent=1, allow_nan=False))
        part.replace(folder / "run.json")
        self._lines = (folder / "records.jsonl").open("a", encoding="utf-8")

    def append(self, record: Record) -> None:
        """Write one record as one line and hand it to the operating system at once."""
        self._lines.write(json.dumps(to_json(record), allow_nan=False, ensure_ascii=False) + "\n")
        self._lines.flush()

    def close(self) -> None:
        self._lines.close()


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


def exit_code(counts: Mapping[str, int]) -> int:
    """1 any FAIL; else 2 any ERROR; else 3 any VACUOUS or nothing passed; else 0."""
    if counts.get(Outcome.FAIL, 0):
        return 1
    if counts.get(Outcome.ERROR, 0):
        return 2
    if counts.get(Outcome.VACUOUS, 0) or not counts.get(Outcome.PASS, 0):
        return 3
    return 0

"""What was measured once and holds for every run: a text file of one entry a line.

Two families of entries, each a 99.9th percentile per checkpoint, dtype, output kind and length:
`baseline_errors`, the baseline's distance from float64, and `nulls`, the distance of two runs that
may differ in the order of their sums only. The file changes through `parity approve FILE` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.judge.output import OutputKind
from harness.judge.tolerance import BUCKET_NAMES, EPSILON, MIN_COUNT, BucketKey, ToleranceError

CALIBRATION = Path(__file__).with_name("calibration.json")
VERSION = 2

FLOAT64 = "float64"
"""The baseline beside the oracle: a baseline error."""
CHUNKED = "chunked"
"""A prompt in chunks beside the whole prompt: a null."""
COMPANY = "company"
"""A prompt alone beside the same prompt among others: a null."""
NULLS = (CHUNKED, COMPANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """A measured distribution: of errors between known-good runs, or of one against float64."""

    quantile: float
    """99.9th percentile of the kind's error."""
    count: int
    seed: int
    command: str

    def __post_init__(self) -> None:
        if self.count < MIN_COUNT or not self.command.strip() or not self.quantile >= 0:
            raise ToleranceError(
                f"a null needs quantile >= 0, at least {MIN_COUNT} pairs and the command that "
                f"measured it; got quantile={self.quantile}, count={self.count}, "
                f"command={self.command!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a calibration."""

    key: BucketKey
    pairs: str
    """What was beside what: FLOAT64 or one of NULLS."""
    null: Null

    def __post_init__(self) -> None:
        key = self.key
        for name, value, valid in (
            ("pairs", self.pairs, (FLOAT64, *NULLS)),
            ("dtype", key.dtype, tuple(EPSILON)),
            ("bucket", key.bucket, BUCKET_NAMES),
        ):
            if value not in valid:
                raise ToleranceError(f"{name}={value!r} is unknown; valid: {', '.join(valid)}")

    @property
    def place(self) -> tuple[str, str, str, int, str]:
        """Where it stands in the file, and what it replaces."""
        key = self.key
        bucket = BUCKET_NAMES.index(key.bucket)
        return (key.checkpoint, key.dtype, str(key.kind), bucket, self.pairs)

    def line(self) -> str:
        """The entry as one line of JSON; four digits say all that 1,000 samples know."""
        null = self.null
        values = {
            **self.key._asdict(),
            "pairs": self.pairs,
            "quantile": float(f"{null.quantile:.4g}"),
            "count": null.count,
            "seed": null.seed,
            "command": null.command,
        }
        return json.dumps(values, ensure_ascii=False)


def text(entries: Iterable[Entry]) -> str:
    """The file's whole text: sorted, so that two files differ where their measurements do."""
    found = sorted(entries, key=lambda entry: entry.place)
    errors = [e.line() for e in found if e.pairs == FLOAT64]
    nulls = [e.line() for e in found if e.pairs != FLOAT64]
    return (
        f'{{\n"version": {VERSION},\n"baseline_errors": [\n'
        + ",\n".join(errors)
        + '\n],\n"nulls": [\n'
        + ",\n".join(nulls)
        + "\n]\n}\n"
    )


def parse(content: str, name: str) -> tuple[Entry, ...]:
    """Inverse of `text`; `name` is used in messages only. Raises ToleranceError."""
    try:
        data: Mapping[str, Any] = json.loads(content)
        if data["version"] != VERSION:
            raise ToleranceError(
                f"{name} is a calibration of version {data['version']!r}, this reads {VERSION}; "
                "measure it again with `parity calibrate`"
            )
        return tuple(_entry(e) for e in (*data["baseline_errors"], *data["nulls"]))
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, ToleranceError):
            raise
        raise ToleranceError(
            f"{name} is not a calibration: {type(error).__name__}: {error}; expected "
            f'{{"version": {VERSION}, "baseline_errors": [{{checkpoint, dtype, kind, bucket, '
            'pairs, quantile, count, seed, command}], "nulls": [the same]}'
        ) from error


def read(path: Path) -> tuple[Entry, ...]:
    """Entries of a calibration file. Raises ToleranceError."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ToleranceError(f"{path} is not a calibration: {error}") from error


def _entry(data: Mapping[str, Any]) -> Entry:
    return Entry(
        key=BucketKey(data["checkpoint"], data["dtype"], OutputKind(data["kind"]), data["bucket"]),
        pairs=data["pairs"],
        null=Null(
            quantile=float(data["quantile"]),
            count=int(data["count"]),
            seed=int(data["seed"]),
            command=data["command"],
        ),
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured distributions by bucket; either may be empty."""

    nulls: Mapping[BucketKey, Null]
    """Distances between two known-good runs: the widest of what was measured for the bucket."""
    baseline_errors: Mapping[BucketKey, Null] = field(default_factory=dict)
    """The baseline's own error against float64: a run's few cases do not reach its q99.9."""

    def null(self, key: BucketKey) -> Null | None:
        return self.nulls.get(key)

    def baseline_error(self, key: BucketKey) -> Null | None:
        return self.baseline_errors.get(key)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Calibration:
        nulls: dict[BucketKey, Null] = {}
        errors: dict[BucketKey, Null] = {}
        for entry in entries:
            table = errors if entry.pairs == FLOAT64 else nulls
            other = table.get(entry.key)
            if other is None or other.quantile < entry.null.quantile:
                table[entry.key] = entry.null
        return cls(nulls, errors)

    @classmethod
    def load(cls, path: Path | None = None) -> Calibration:
        """Read a calibration file (default: the one in this package). Raises ToleranceError."""
        return cls.of(read(path or CALIBRATION))

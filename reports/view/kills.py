"""The kill matrix: which planted faults the ordinary cases and checks of a profile find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.record import Json
from reports.view.text import plain

OUTCOMES = ("PASS", "FAIL", "ERROR", "VACUOUS", "INAPPLICABLE")


@dataclass(frozen=True, slots=True, kw_only=True)
class KillRow:
    name: str
    killed: bool
    counts: tuple[int, ...]
    """Failing comparisons, by check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillMatrix:
    checks: tuple[str, ...]
    rows: tuple[KillRow, ...]
    killed: int
    false_alarms: int


def kill_matrix(data: Json) -> KillMatrix | None:
    """From what `parity faults` left in the run's folder; None for anything else."""
    faults = data.get("faults") if isinstance(data, Mapping) else None
    named = [f for f in faults if isinstance(f, Mapping)] if isinstance(faults, list) else []
    if not named:
        return None
    checks = tuple(
        dict.fromkeys(plain(check) for f in named for check in _counts(f) if check not in OUTCOMES)
    )
    rows = tuple(
        KillRow(
            name=plain(f.get("name", "")),
            killed=bool(f.get("killed")),
            counts=tuple(_counts(f).get(check, 0) for check in checks),
        )
        for f in named
    )
    alarms = data.get("false_alarms", 0)
    return KillMatrix(
        checks=checks,
        rows=rows,
        killed=sum(row.killed for row in rows),
        false_alarms=alarms if isinstance(alarms, int) else 0,
    )


def _counts(fault: Mapping[str, Json]) -> dict[str, int]:
    by = fault.get("by")
    if not isinstance(by, Mapping):
        return {}
    return {str(k): int(v) for k, v in by.items() if isinstance(v, int)}

"""The kill matrix: which planted faults the ordinary cases and checks of a profile find, and that
they leave alone what is no fault."""

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
    called: tuple[int, ...] = ()
    """Comparisons with one changed side that each rule calls different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRow:
    """A legitimate difference of arithmetic."""

    name: str
    flagged: bool
    pairs: int
    """Comparisons judged with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """What one rule, this judge's or another project's, says of the same outputs."""

    dtype: str
    rule: str
    false_alarms: int
    of: int
    """Comparisons in which nothing was wrong."""
    killed: int
    of_faults: int
    """Faults that changed one side of a comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillMatrix:
    checks: tuple[str, ...]
    rows: tuple[KillRow, ...]
    killed: int
    false_alarms: int
    """On the engine as it is and with the controls."""
    controls: tuple[ControlRow, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    rule_names: tuple[str, ...] = ()
    """Of the columns behind the checks."""

    @property
    def control_pairs(self) -> int:
        return sum(control.pairs for control in self.controls)

    @property
    def flagged(self) -> int:
        """Controls that raised an alarm."""
        return sum(control.flagged for control in self.controls)


def kill_matrix(data: Json) -> KillMatrix | None:
    """From what `parity faults` left in the run's folder; None for anything else."""
    named, controls = _mappings(data, "faults"), _mappings(data, "controls")
    if not isinstance(data, Mapping) or not (named or controls):
        return None
    checks = tuple(
        dict.fromkeys(plain(check) for f in named for check in _counts(f) if check not in OUTCOMES)
    )
    names = tuple(dict.fromkeys(name for f in named for name in _counts(f, "rules")))
    rows = tuple(
        KillRow(
            name=plain(f.get("name", "")),
            killed=bool(f.get("killed")),
            counts=tuple(_counts(f).get(check, 0) for check in checks),
            called=tuple(_counts(f, "rules").get(name, 0) for name in names),
        )
        for f in named
    )
    return KillMatrix(
        checks=checks,
        rows=rows,
        killed=sum(row.killed for row in rows),
        rule_names=tuple(plain(name) for name in names),
        false_alarms=_count(data.get("false_alarms")),
        controls=tuple(
            ControlRow(
                name=plain(c.get("name", "")),
                flagged=bool(c.get("flagged")),
                pairs=_count(c.get("pairs")),
            )
            for c in controls
        ),
        rules=tuple(
            RuleRow(
                dtype=plain(r.get("dtype", "")),
                rule=plain(r.get("rule", "")),
                false_alarms=_count(r.get("false_alarms")),
                of=_count(r.get("of")),
                killed=_count(r.get("killed")),
                of_faults=_count(r.get("of_faults")),
            )
            for r in _mappings(data, "rules")
        ),
    )


def _mappings(data: Json, name: str) -> list[Mapping[str, Json]]:
    found = data.get(name) if isinstance(data, Mapping) else None
    return [m for m in found if isinstance(m, Mapping)] if isinstance(found, list) else []


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _counts(fault: Mapping[str, Json], what: str = "by") -> dict[str, int]:
    by = fault.get(what)
    if not isinstance(by, Mapping):
        return {}
    return {str(k): int(v) for k, v in by.items() if isinstance(v, int)}

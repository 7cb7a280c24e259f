"""The tolerances in force: the project's table, or that table with a user's own entries on top.

A file of own entries is TOML or JSON:

    why = "our product ranks, it does not threshold"
    thresholds = [0.5]              # scores at which a decision is made

    [[tolerance]]
    tier = "kernel"                 # which rules; each selector may be left out
    kind = "embedding"
    floor = 1e-5                    # what becomes of them: floor, k or null_factor

    [[cap]]                         # how far the baseline may be from float64
    dtype = "float32"
    floor = 2e-5
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.judge.output import OutputKind
from harness.judge.tolerance import (
    BUCKET_NAMES,
    EPSILON,
    ORACLE_CAP,
    TABLE,
    BucketKey,
    Tolerance,
    ToleranceError,
)
from harness.record import Tier

_SELECTORS: Mapping[str, tuple[str, ...]] = {
    "tier": (str(Tier.REORDERED), str(Tier.KERNEL)),
    "dtype": tuple(EPSILON),
    "kind": tuple(str(kind) for kind in OutputKind),
    "bucket": BUCKET_NAMES,
}
"""The exact tier is not among them: it has no tolerance that could be another."""
_VALUES = ("floor", "k", "null_factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Every tolerance of a judgement."""

    table: Mapping[tuple[Tier, str, OutputKind, str], Tolerance] = field(
        default_factory=lambda: TABLE
    )
    caps: Mapping[tuple[str, OutputKind], Tolerance] = field(default_factory=lambda: ORACLE_CAP)
    thresholds: tuple[float, ...] = ()
    """Scores at which a user decides: on which side of one a score lies is compared as well."""

    def tolerance(self, tier: Tier, key: BucketKey) -> Tolerance:
        """The rule of one bucket."""
        return self.table[tier, key.dtype, key.kind, key.bucket]

    def cap(self, dtype: str, kind: OutputKind) -> Tolerance:
        """How far the baseline itself may be from float64."""
        return self.caps[dtype, kind]

    def with_bound(self, tier: Tier, key: BucketKey, bound: float) -> Rules:
        """These rules with the bound of one bucket at least as high as this."""
        at = tier, key.dtype, key.kind, key.bucket
        rule = self.table[at]
        raised = replace(rule, floor=max(rule.floor, bound))
        return replace(self, table={**self.table, at: raised})

    def with_cap(self, dtype: str, kind: OutputKind, cap: float) -> Rules:
        """These rules with the baseline's cap at least as high as this."""
        rule = self.caps[dtype, kind]
        raised = replace(rule, floor=max(rule.floor, cap))
        return replace(self, caps={**self.caps, (dtype, kind): raised})


def read_rules(path: Path) -> Rules:
    """The table with a file's entries on top. ToleranceError names the file and what is wrong."""
    try:
        content = path.read_text(encoding="utf-8")
        data: Any = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
        return _rules(data)
    except (OSError, ValueError, TypeError) as error:
        raise ToleranceError(f"{path}: {error}") from error


def _rules(data: Any) -> Rules:
    if not isinstance(data, Mapping):
        raise ToleranceError(f"expected a table of why, thresholds, tolerance and cap, got {data}")
    unknown = sorted(set(data) - {"why", "thresholds", "tolerance", "cap"})
    if unknown:
        raise ToleranceError(
            f"unknown key {', '.join(unknown)}; valid: why, thresholds, tolerance, cap"
        )
    why = str(data.get("why", "")).strip()
    if not why:
        raise ToleranceError("tolerances of your own need `why`: what was measured, and how")
    thresholds = data.get("thresholds", [])
    if not isinstance(thresholds, list) or not all(
        isinstance(t, int | float) and not isinstance(t, bool) for t in thresholds
    ):
        raise ToleranceError(f"thresholds={thresholds!r} must be a list of numbers")
    table, caps = dict(TABLE), dict(ORACLE_CAP)
    for entry in _entries(data, "tolerance"):
        chosen, changes = _split(entry, _SELECTORS, _VALUES)
        for tier, dtype, kind, bucket in table:
            place = {"tier": str(tier), "dtype": dtype, "kind": str(kind), "bucket": bucket}
            if tier is not Tier.EXACT and chosen.items() <= place.items():
                at = tier, dtype, kind, bucket
                table[at] = replace(table[at], **changes, why=why)
    for entry in _entries(data, "cap"):
        selectors = {name: _SELECTORS[name] for name in ("dtype", "kind")}
        chosen, changes = _split(entry, selectors, ("floor", "k"))
        for dtype, kind in caps:
            if chosen.items() <= {"dtype": dtype, "kind": str(kind)}.items():
                caps[dtype, kind] = replace(caps[dtype, kind], **changes, why=why)
    return Rules(table=table, caps=caps, thresholds=tuple(float(t) for t in thresholds))


def _entries(data: Mapping[str, Any], name: str) -> list[Any]:
    found = data.get(name, [])
    if not isinstance(found, list):
        raise ToleranceError(f"{name} must be a list of tables, got {type(found).__name__}")
    return found


def _split(
    entry: Any, selectors: Mapping[str, Iterable[str]], values: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, float]]:
    """Which rules an entry means, and what becomes of them."""
    if not isinstance(entry, Mapping):
        raise ToleranceError(f"an entry is a table, got {entry!r}")
    unknown = sorted(set(entry) - set(selectors) - set(values))
    if unknown:
        raise ToleranceError(
            f"unknown key {', '.join(unknown)} in an entry; selectors: {', '.join(selectors)}; "
            f"values: {', '.join(values)}"
        )
    for name, valid in selectors.items():
        if name in entry and entry[name] not in valid:
            raise ToleranceError(f"{name}={entry[name]!r} is unknown; valid: {', '.join(valid)}")
    changes = {name: entry[name] for name in values if name in entry}
    if not changes:
        raise ToleranceError(f"an entry changes nothing; give one of {', '.join(values)}")
    for name, value in changes.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ToleranceError(f"{name}={value!r} is not a number")
    return {name: entry[name] for name in selectors if name in entry}, changes

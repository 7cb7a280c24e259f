"""What hides a failure: switches with which the case was judged and passed, and only those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.record import Comparison, FindingRecord, Outcome, PairRecord
from reports.view.text import plural

SPLIT = "hidden when every prompt is split over steps"
"""The search's word that splitting hides it, which no truth table of a short case can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hiding:
    """`axis=value` that makes the failure go away, and where it does not."""

    value: str
    note: str

    def __str__(self) -> str:
        return f"{self.value} ({self.note})" if self.note else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    by: tuple[Hiding, ...]
    idle: tuple[str, ...]
    """Values that could not act on the shrunk case: they show nothing either way."""


def hidden(
    finding: FindingRecord, baseline: Mapping[str, str], pairs: Sequence[PairRecord]
) -> Hidden:
    """`pairs`: all of the finding's checkpoint; `baseline`: each axis' plain value."""
    added = _added(finding, baseline)
    ids = frozenset(finding.pairs)
    own = {p.case_id for p in pairs if p.pair_id in ids}
    masked = list(map(str, finding.masked_by))
    by, idle = [], []
    for value in dict.fromkeys((*masked, *added)):
        only_idle = added.get(value) == {Outcome.INAPPLICABLE}
        shown = value in masked
        if only_idle and SPLIT in finding.conditions and value == "chunk=chunked":
            only_idle = False
        if only_idle and shown and own & _cases(finding, value, pairs, Outcome.PASS):
            only_idle = False
        if only_idle:
            idle.append(value)
        elif shown:
            failing = len(_cases(finding, value, pairs, Outcome.FAIL))
            verb = "fails" if failing == 1 else "fail"
            note = f"in the shrunk case; {plural(failing, 'case')} of this run {verb} with it"
            by.append(Hiding(value=value, note=note if failing else ""))
    return Hidden(by=tuple(by), idle=tuple(idle))


def _added(finding: FindingRecord, baseline: Mapping[str, str]) -> dict[str, set[Outcome]]:
    """Value -> what became of the failing cells of the truth table when it was added to them."""
    outcomes = {_items(row.cell): row.outcome for row in finding.truth_table}
    failing = [row.cell for row in finding.truth_table if row.outcome is Outcome.FAIL]
    found: dict[str, set[Outcome]] = {}
    for row in finding.truth_table:
        for axis, value in row.cell.items():
            plain = baseline.get(axis)
            if value == plain or plain is None or {**row.cell, axis: plain} not in failing:
                continue
            found.setdefault(f"{axis}={value}", set()).add(outcomes[_items(row.cell)])
    return found


def _cases(
    finding: FindingRecord, value: str, pairs: Sequence[PairRecord], outcome: Outcome
) -> set[str]:
    """Cases that end so, against the baseline, in a cell with a failing set and this value."""
    wanted = [{*map(str, s), value} for s in finding.minimal_sets]
    return {
        p.case_id
        for p in pairs
        if p.comparison is Comparison.BASELINE
        and p.outcome is outcome
        and any(s <= _items(p.cell_b) for s in wanted)
    }


def _items(cell: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f"{axis}={value}" for axis, value in cell.items())

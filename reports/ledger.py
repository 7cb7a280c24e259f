"""The ledger of known findings: which failures are accepted, by whom, and until when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from harness.record import FindingRecord
from reports.load import Run


class State(StrEnum):
    """How a finding stands with the ledger."""

    NEW = "new"
    """Nobody has accepted it."""
    KNOWN = "known"
    EXPIRED = "expired"
    """Accepted once; the day until which it was accepted has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding:
    """One entry: a finding that may fail until the end of a day (UTC)."""

    finding_id: str = ""
    signature: str = ""
    """A signature in which `*` stands for any text; used where no id is given."""
    owner: str
    link: str
    expires: date
    """The last day on which it passes."""
    reason: str = ""

    @property
    def name(self) -> str:
        return self.finding_id or self.signature

    def matches(self, finding: FindingRecord) -> bool:
        if self.finding_id:
            return finding.finding_id == self.finding_id
        parts = (re.escape(part) for part in self.signature.split("*"))
        return re.fullmatch(".*".join(parts), finding.signature, re.DOTALL) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One finding of a run and the entry that covers it, if any."""

    finding: FindingRecord
    state: State
    entry: KnownFinding | None


def standings(run: Run, known: Sequence[KnownFinding], today: date) -> tuple[Standing, ...]:
    """Every finding of the run; where several entries match, the one that lasts longest counts."""
    found = []
    for finding in run.findings:
        entries = [entry for entry in known if entry.matches(finding)]
        entry = max(entries, key=lambda e: e.expires, default=None)
        state = State.NEW
        if entry is not None:
            state = State.KNOWN if today <= entry.expires else State.EXPIRED
        found.append(Standing(finding=finding, state=state, entry=entry))
    return tuple(found)


def unmatched(run: Run, known: Sequence[KnownFinding]) -> tuple[KnownFinding, ...]:
    """Entries that no finding of the run answers to: fixed, or never looked for."""
    return tuple(e for e in known if not any(e.matches(f) for f in run.findings))

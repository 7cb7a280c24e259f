"""What was known before the run, as every form of a report tells it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from harness.record import NO_CASE, Source
from reports.fates import FAILING, Fate, Replayed, fates
from reports.load import Run

SOURCES = {Source.LEDGER: "ledger", Source.CORPUS: "corpus", None: "this run's cases"}
MAX_KNOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The fates, worst first, and how many there are of each."""

    rows: tuple[Replayed, ...]
    more: int
    counts: tuple[tuple[Fate, int], ...]

    @property
    def summary(self) -> str:
        """`1 expired, 2 fixed`"""
        return ", ".join(f"{n} {fate}" for fate, n in self.counts)

    @property
    def failing(self) -> int:
        """Entries of the ledger whose own case, or the run's cases, still fail."""
        return sum(r.fate in FAILING and r.source is Source.LEDGER for r in self.rows)


def known(run: Run) -> Known | None:
    """None where nothing was known. Expiry is that of the day on which the run began."""
    found = fates(run, _day(run.manifest.created))
    if not found:
        return None
    counts = tuple((fate, sum(r.fate is fate for r in found)) for fate in Fate)
    return Known(
        rows=tuple(found[:MAX_KNOWN]),
        more=max(0, len(found) - MAX_KNOWN),
        counts=tuple((fate, n) for fate, n in counts if n),
    )


def place(row: Replayed) -> str:
    """`ledger: ada, until 2027-01-31`"""
    told = SOURCES[row.source]
    if row.entry is not None:
        told += f": {row.entry.owner}, until {row.entry.expires.isoformat()}, {row.entry.link}"
    return told


def remedy(row: Replayed) -> str:
    """What to do about it; empty where nothing is to be done."""
    if row.source is not Source.LEDGER:
        return ""
    return {
        Fate.FIXED: f"parity known drop {row.name}",
        Fate.UNTOLD: f"parity known add {row.name}" if NO_CASE in row.note else "",
    }.get(row.fate, "")


def _day(created: str) -> date:
    return datetime.fromisoformat(created).astimezone(UTC).date()

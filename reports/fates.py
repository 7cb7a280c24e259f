"""What became of everything known before a run: the ledger's entries, the corpus's cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from harness.record import FindingRecord, ReplayRecord, Source
from reports.ledger import KnownFinding
from reports.load import Run


class Fate(StrEnum):
    """What became of one of them, worst first."""

    NEW = "new"
    EXPIRED = "expired"
    STILL = "still failing"
    FIXED = "fixed"
    PASSES = "passes"
    UNTOLD = "not replayed"


FATES = {
    Fate.NEW: "fails, and nobody has accepted it; a corpus's case passed when it was kept",
    Fate.EXPIRED: "fails, and the day until which it was accepted has passed",
    Fate.STILL: "fails, as it did when it was kept",
    Fate.FIXED: "failed when it was kept, and passes",
    Fate.PASSES: "a hard case that passed when it was kept, and passes",
    Fate.UNTOLD: "this run says nothing about it",
}
FAILING = (Fate.NEW, Fate.EXPIRED, Fate.STILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One of them and its fate."""

    fate: Fate
    name: str
    title: str
    checkpoint: str
    source: Source | None
    """None: a finding of the run that is in neither."""
    note: str = ""
    entry: KnownFinding | None = None
    reproduce: str = ""


def fates(run: Run, today: date, known: Sequence[KnownFinding] | None = None) -> list[Replayed]:
    """Worst first. `known`: the ledger as it stands now; by default as the run recorded it.

    What the run's own cases show fails, whatever the kept case did: a fault may outlive its
    smallest case.
    """
    found = []
    recorded = [entry for record in run.replays if (entry := entry_of(record)) is not None]
    ledger = recorded if known is None else known
    for record in run.replays:
        if record.source is Source.CORPUS:
            found.append(_of_corpus(record))
            continue
        then = entry_of(record)
        entry = next((e for e in ledger if then is not None and _same(e, then)), None)
        if entry is not None:  # else it was taken out since
            found.append(_of_ledger(record, entry, run.findings, today))
    if recorded:
        found += _unknown(run, ledger)
    return sorted(found, key=lambda r: list(Fate).index(r.fate))


def entry_of(record: ReplayRecord) -> KnownFinding | None:
    """The ledger's entry, as the run recorded it; None of a case of the corpus."""
    if record.source is not Source.LEDGER:
        return None
    return KnownFinding(
        finding_id=record.entry_id,
        signature=record.entry_signature,
        owner=record.owner,
        link=record.link,
        expires=_day(record.expires),
    )


def _day(text: str) -> date:
    """A day that cannot be read has passed."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.min


def _same(a: KnownFinding, b: KnownFinding) -> bool:
    return (a.finding_id, a.signature) == (b.finding_id, b.signature)


def _of_ledger(
    record: ReplayRecord, entry: KnownFinding, findings: Sequence[FindingRecord], today: date
) -> Replayed:
    seen = any(
        f.finding_id == record.name or (record.fails_now is None and entry.matches(f))
        for f in findings
    )
    note = record.note
    if seen and not record.fails_now:
        note = "; ".join(filter(None, (note, "cases of this run show it")))
    if record.fails_now or seen:
        fate = Fate.STILL if today <= entry.expires else Fate.EXPIRED
    else:
        fate = Fate.UNTOLD if record.fails_now is None else Fate.FIXED
    return _told(record, fate, note=note, entry=entry)


def _of_corpus(record: ReplayRecord) -> Replayed:
    if record.fails_now is None:
        return _told(record, Fate.UNTOLD, note=record.note)
    if record.fails_now:
        return _told(record, Fate.STILL if record.failed_then else Fate.NEW, note=record.note)
    return _told(record, Fate.FIXED if record.failed_then else Fate.PASSES, note=record.note)


def _told(
    record: ReplayRecord, fate: Fate, *, note: str, entry: KnownFinding | None = None
) -> Replayed:
    return Replayed(
        fate=fate,
        name=record.name,
        title=record.title,
        checkpoint=record.checkpoint,
        source=record.source,
        note=note,
        entry=entry,
        reproduce=record.reproduce,
    )


def _unknown(run: Run, entries: Sequence[KnownFinding]) -> Iterator[Replayed]:
    for finding in run.findings:
        if not any(entry.matches(finding) for entry in entries):
            yield Replayed(
                fate=Fate.NEW,
                name=finding.finding_id,
                title=finding.title,
                checkpoint=finding.checkpoint,
                source=None,
                reproduce=finding.reproduce,
            )

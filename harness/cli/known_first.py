"""What `parity run` does before its own cases: replay the ledger's kept cases, tell, record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.campaign.corpus import corpus_of
from harness.campaign.spec import RunSpec
from harness.cli.errors import UsageError
from harness.cli.folders import corpus_root
from harness.cli.gate import RULES
from harness.record import NO_CASE, KnownCase, ReplayRecord, RunWriter, Source

if TYPE_CHECKING:
    from rich.console import Console

    from reports.ledger import KnownFinding


def with_known(spec: RunSpec, rules: Path | None) -> RunSpec:
    """The request with the ledger of `rules` and the corpus; what cannot be read is told now."""
    from harness.known_cases import kept

    if rules is not None and not rules.is_file():
        raise UsageError(f"no rules file {rules}; leave --rules out, or name one")
    ledger = RULES if rules is None else rules
    if ledger.is_file() and _entries(ledger):
        kept(ledger)
        spec = replace(spec, ledger=str(ledger.resolve()))
    if spec.system == "engine":  # what is searched is our engine; its streams are in the settings
        spec = replace(spec, corpus=str(corpus_root().resolve()))
        if not any(corpus_of(spec, name) for name in spec.checkpoints):
            spec = replace(spec, corpus=None)
    return spec


def replay_known(
    spec: RunSpec, writer: RunWriter, console: Console, *, told: Sequence[ReplayRecord] = ()
) -> tuple[ReplayRecord, ...]:
    """Record what became of every entry of the ledger; `told`: what the run has recorded of it."""
    if spec.ledger is None:
        return ()
    found = list(told)
    for record in _replayed(spec, Path(spec.ledger), writer.folder, {r.name for r in told}):
        writer.append(record)
        found.append(record)
        word = {True: "still failing", False: "passes", None: "not replayed"}[record.fails_now]
        why = f" ({record.note})" if record.note else ""
        console.print(f"known {record.name}: {word}{why}", highlight=False, soft_wrap=True)
    return tuple(found)


def _replayed(spec: RunSpec, ledger: Path, folder: Path, told: set[str]) -> Iterator[ReplayRecord]:
    from harness.known_cases import cannot_replay, kept
    from harness.recall import Answer, recall

    entries, cases = _entries(ledger), kept(ledger)
    covered = [(case, entry) for case in cases if (entry := _entry_of(case, entries)) is not None]
    covered = [(case, entry) for case, entry in covered if case.finding.finding_id not in told]
    asked = []
    for case, entry in covered:
        reason = cannot_replay(case, spec)
        if reason:
            yield _record(entry, case, Answer(None, reason), ledger)
        else:
            asked.append((case, entry))
    answers = recall(spec, [case for case, _ in asked], folder)
    for (case, entry), answer in zip(asked, answers, strict=True):
        yield _record(entry, case, answer, ledger)
    for entry in entries:
        if entry.name not in told and not any(entry.matches(case.finding) for case in cases):
            yield _record(entry, None, Answer(None, NO_CASE), ledger)


def _entry_of(case: KnownCase, entries: Sequence[KnownFinding]) -> KnownFinding | None:
    """The entry that covers the case: where several do, the one that lasts longest."""
    matching = [entry for entry in entries if entry.matches(case.finding)]
    return max(matching, key=lambda entry: entry.expires, default=None)


def _record(
    entry: KnownFinding, case: KnownCase | None, answer: tuple[bool | None, str], ledger: Path
) -> ReplayRecord:
    fails, note = answer
    name = entry.name if case is None else case.finding.finding_id
    again = f"parity replay {name} --rules {_shown(ledger)}"
    return ReplayRecord(
        source=Source.LEDGER,
        name=name,
        checkpoint="" if case is None else case.finding.checkpoint,
        title=entry.reason or entry.name if case is None else case.finding.title,
        failed_then=True,
        fails_now=fails,
        note=note,
        reproduce="" if case is None else again,
        entry_id=entry.finding_id,
        entry_signature=entry.signature,
        owner=entry.owner,
        link=entry.link,
        expires=entry.expires.isoformat(),
    )


def _shown(ledger: Path) -> str:
    here = Path.cwd()
    return str(ledger.relative_to(here)) if ledger.is_relative_to(here) else str(ledger)


def _entries(ledger: Path) -> tuple[KnownFinding, ...]:
    from reports.gate import read_rules

    return read_rules(ledger).known

"""Going on with a run that was killed or ran out of time, from what it had finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.campaign.manifest import environment
from harness.campaign.spec import NOT_FINISHED, OUT_OF_TIME, RunSpec
from harness.record import (
    CaseEndRecord,
    CaseRecord,
    EndRecord,
    ExecutionRecord,
    NoticeRecord,
    Record,
    RecordError,
    RelationRecord,
    ReplayRecord,
    RunManifest,
    Source,
    read_manifest,
    read_records,
)


class CannotResumeError(ValueError):
    """The run is whole, or what it had finished may not be judged together with what is new."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What is left of a run to go on with.

    Cases are kept whole or not at all. Verdicts are not kept: bounds rest on all cases, so that all
    are judged again.
    """

    spec: RunSpec
    manifest: RunManifest
    kept: Mapping[str, Sequence[Record]]
    """Checkpoint -> the records of its finished cases."""
    replays: Sequence[ReplayRecord] = ()
    """What the ledger's kept cases did; those of the corpus are judged again."""

    @property
    def done(self) -> Mapping[str, tuple[str, ...]]:
        """Checkpoint -> the ids of its finished cases."""
        return {
            name: tuple(r.case_id for r in records if isinstance(r, CaseEndRecord))
            for name, records in self.kept.items()
        }

    def records(self) -> Iterator[Record]:
        """What the run's file begins with again."""
        yield from (NoticeRecord(text=text) for text in self.manifest.notices)
        yield from self.replays
        for records in self.kept.values():
            yield from records


def unfinished(folder: Path) -> Unfinished:
    """Read a run folder.

    Raises:
        RecordError: no run, or one that cannot be read.
        CannotResumeError: nothing is missing from it; its prompts were redacted; or code, machine
            or versions are others now.
    """
    manifest = read_manifest(folder)
    try:
        spec = RunSpec.from_json(manifest.settings)
    except (TypeError, KeyError) as error:
        raise RecordError(f"{folder} is not a run that `parity run` can go on with") from error
    if spec.redact:
        raise CannotResumeError(
            f"{folder.name} keeps no prompts (--redact), so its finished cases cannot be judged "
            "again; start a new run"
        )
    now = environment()
    changed = [
        f"{name} {manifest.environment.get(name)!r} then, {now.get(name)!r} now"
        for name in sorted({*now, *manifest.environment})
        if now.get(name) != manifest.environment.get(name)
    ]
    if changed:
        raise CannotResumeError(
            f"{folder.name} ran with {'; '.join(changed)}: its answers and new ones may differ by "
            "that alone. Go back to what it ran with, or start a new run"
        )
    records = list(read_records(folder))
    told = [record.text for record in records if isinstance(record, NoticeRecord)]
    if any(isinstance(record, EndRecord) for record in records) and not any(
        part in text for text in told for part in (OUT_OF_TIME, NOT_FINISHED)
    ):
        raise CannotResumeError(
            f"{folder.name} ran to its end; `parity judge {folder.name}` judges it again, and "
            "`parity replay` runs a case again"
        )
    ended = {(r.checkpoint, r.case_id) for r in records if isinstance(r, CaseEndRecord)}
    kept: dict[str, list[Record]] = {name: [] for name in spec.checkpoints}
    for record in records:
        if (
            isinstance(record, CaseRecord | CaseEndRecord | ExecutionRecord | RelationRecord)
            and (record.checkpoint, record.case_id) in ended
        ):
            kept[record.checkpoint].append(record)
    replays = [r for r in records if isinstance(r, ReplayRecord) and r.source is Source.LEDGER]
    return Unfinished(spec=spec, manifest=manifest, kept=kept, replays=replays)

"""The corpus: hard cases that `parity search` kept, one file a checkpoint, a case a line.

A line is the case's own JSON, so that `parity run --cases FILE` runs it, with one more key `kept`:
the settings it was found under, and whether it failed then.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.campaign.spec import RunSpec
from harness.case import Case, CaseError, case_from_json
from harness.record import Outcome, PairRecord, ReplayRecord, Source

KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCase:
    """One case of a corpus."""

    case: Case
    settings: Mapping[str, str] = field(default_factory=dict)
    """Stream policy and inputs that it was found under; empty: those of the profile."""
    failed: bool = False
    """When it was kept."""

    def to_line(self) -> str:
        """One line of the file, without its end."""
        kept = {"settings": dict(self.settings), "failed": self.failed}
        return json.dumps({**self.case.to_json(), KEPT: kept}, ensure_ascii=False)


def file_of(folder: Path, checkpoint: str) -> Path:
    """A checkpoint's corpus, whether it is there or not."""
    return folder / f"{checkpoint}.jsonl"


def read_cases(path: Path) -> list[Case]:
    """Cases of a JSON-lines file. CaseError names the file, the line and what is wrong."""
    found = [kept.case for kept in read_corpus(path)]
    if not found:
        raise CaseError(f"{path} holds no case; write one JSON object a line")
    return found


def read_corpus(path: Path) -> list[KeptCase]:
    """Every case of a file of cases, with what was kept beside it. Raises CaseError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"cannot read cases from {path}: {error}") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(_kept(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise CaseError(f"{path} line {number}: {error}") from error
    return found


def corpus_of(spec: RunSpec, checkpoint: str) -> Sequence[KeptCase]:
    """What a run has to run first on a checkpoint."""
    path = None if spec.corpus is None else file_of(Path(spec.corpus), checkpoint)
    return read_corpus(path) if path is not None and path.is_file() else ()


def replays(
    checkpoint: str, corpus: Sequence[KeptCase], pairs: Sequence[PairRecord]
) -> Iterator[ReplayRecord]:
    """What became of each case of the corpus, from the judged pairs of the checkpoint."""
    outcomes: dict[str, set[Outcome]] = defaultdict(set)
    for pair in pairs:
        outcomes[pair.case_id].add(pair.outcome)
    for kept in corpus:
        case, seen = kept.case, outcomes[kept.case.case_id]
        fails = Outcome.FAIL in seen
        told = fails or (Outcome.PASS in seen and Outcome.ERROR not in seen)
        yield ReplayRecord(
            source=Source.CORPUS,
            name=case.case_id,
            checkpoint=checkpoint,
            title=f"{case.task}, {len(case.prompts)} prompt{'s' if len(case.prompts) > 1 else ''}",
            failed_then=kept.failed,
            fails_now=fails if told else None,
            note="" if told else "no comparison of it could be judged",
        )


def add(path: Path, cases: Sequence[KeptCase]) -> int:
    """Keep the cases that the file does not hold; how many. It is replaced whole or not at all.

    A case that it does hold stays as it was kept: what it did then is what a run compares with.
    """
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    held = {kept.case.case_id for kept in read_corpus(path)} if old else set()
    new = [kept.to_line() for kept in _distinct(cases) if kept.case.case_id not in held]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in (*old, *new)), encoding="utf-8")
    part.replace(path)
    return len(new)


def _distinct(cases: Iterable[KeptCase]) -> Iterable[KeptCase]:
    return {kept.case.case_id: kept for kept in cases}.values()


def _kept(data: Any) -> KeptCase:
    if not isinstance(data, Mapping) or KEPT not in data:
        return KeptCase(case=case_from_json(data))
    beside = data[KEPT]
    settings = beside.get("settings", {}) if isinstance(beside, Mapping) else None
    if not isinstance(settings, Mapping) or not isinstance(beside.get("failed"), bool):
        raise CaseError(
            f"{KEPT}={beside!r} is not what `parity search` writes there; it is an object with "
            "settings (an object) and failed (true or false)"
        )
    case = case_from_json({name: value for name, value in data.items() if name != KEPT})
    return KeptCase(case=case, settings=dict(settings), failed=beside["failed"])

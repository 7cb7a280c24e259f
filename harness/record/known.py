"""What is known of earlier failures: a kept smallest case, and what became of it in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from harness.record.finding import FindingRecord
from harness.record.json_data import Json

NO_CASE = "no case of it is kept"
"""Note of an entry that nothing can be replayed of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCase:
    """The smallest case of a known finding and what it takes to run it again.

    Lives beside the ledger, in the repository of whoever accepted the finding: the run that it
    comes from may be long gone. It holds the prompts of that case and names no planted fault.
    """

    kind: ClassVar[str] = "known-case"
    finding: FindingRecord
    """Without what only a report shows: pairs, errors by token and layer, the script."""
    settings: Mapping[str, Json]
    """The request of its run, without what a later run decides: plants, options, paths."""
    run_id: str
    created: str
    commit: str


class Source(StrEnum):
    """Where a case that is replayed comes from."""

    LEDGER = "ledger"
    """Accepted as known, with an owner and a last day."""
    CORPUS = "corpus"
    """Kept by `parity search`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRecord:
    """Something known, and whether it failed when this run replayed it. Never holds a prompt."""

    kind: ClassVar[str] = "replay"
    source: Source
    name: str
    """Id of the finding or of the corpus's case; an entry's own name where no case was kept."""
    checkpoint: str
    title: str
    failed_then: bool
    """When it was kept."""
    fails_now: bool | None
    """None where it was not replayed; `note` says why."""
    note: str = ""
    reproduce: str = ""
    """One command line."""
    entry_id: str = ""
    entry_signature: str = ""
    """The entry of the ledger: it gives an id, or a signature with `*`; the corpus has neither."""
    owner: str = ""
    link: str = ""
    expires: str = ""
    """Last day (UTC, ISO) on which the entry lets it fail."""

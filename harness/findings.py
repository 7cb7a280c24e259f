"""From a judged checkpoint to its findings: makes a workbench ready and asks attribution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.campaign.judging import Executed
from harness.campaign.spec import RunSpec
from harness.judge.bounds import Bounds
from harness.record import FindingRecord, PairRecord


class Finder:
    """Owns: nothing between calls; each call opens and closes one checkpoint's workbench."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self._spec, self._folder = spec, folder

    def find(
        self, name: str, cases: Sequence[Executed], pairs: Sequence[PairRecord], bounds: Bounds
    ) -> Sequence[FindingRecord]:
        """Findings of one checkpoint, shrunk, attributed and localised."""
        return []

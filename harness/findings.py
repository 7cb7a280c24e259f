"""Findings of a run: makes a checkpoint's workbench ready and hands it to attribution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.attribution import Replayed, find, replay
from harness.axes import AXES
from harness.campaign.judging import Executed
from harness.campaign.spec import RunSpec
from harness.judge.bounds import Bounds
from harness.record import FindingRecord, Outcome, PairRecord
from harness.search import Budget

if TYPE_CHECKING:
    from harness.campaign.workbench import Workbench


class Finder:
    """What a campaign calls for a checkpoint with failures."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        self._spec, self._folder = spec, folder

    def find(
        self, name: str, cases: Sequence[Executed], pairs: Sequence[PairRecord], bounds: Bounds
    ) -> Sequence[FindingRecord]:
        """Findings of one checkpoint, shrunk, attributed and localised."""
        if not self._spec.has_array(name):
            return self._find(self._spec, name, cases, pairs, bounds)
        found: list[FindingRecord] = []
        for spec, array in ((self._spec, False), (self._spec.in_array(name), True)):
            part = [case for case in cases if _in_array(e.cell for e in case.executions) == array]
            ids = {case.case.case_id for case in part}
            its = [pair for pair in pairs if pair.case_id in ids]
            if any(pair.outcome is Outcome.FAIL for pair in its):
                mine = self._find(spec, name, part, its, bounds)
                found += [replace(finding, in_array=array) for finding in mine]
        return found

    def _find(
        self,
        spec: RunSpec,
        name: str,
        cases: Sequence[Executed],
        pairs: Sequence[PairRecord],
        bounds: Bounds,
    ) -> Sequence[FindingRecord]:
        with _workbench(spec, name, self._folder) as bench:
            return list(
                find(
                    cases,
                    pairs,
                    system=bench.system,
                    plan=bench.plan,
                    store=bench.store,
                    bounds=bounds,
                    run_id=self._folder.name,
                    plants=self._spec.plants,
                    oracle=bench.reference,
                    policies=bench.system.settings,
                    # Each call may start an engine for a minute: what was recorded has to do.
                    budget=Budget(calls=0, seconds=0.0) if bench.system.costly else None,
                )
            )


def replay_finding(
    spec: RunSpec,
    finding: FindingRecord,
    folder: Path,
    *,
    clean: bool = False,
    policy: str | None = None,
) -> Replayed:
    """Run a finding's truth table again; `clean` leaves the run's plants out, `policy` is a stream
    policy in place of the finding's."""
    chosen = replace(spec, plants=()) if clean else spec
    if spec.has_array(finding.checkpoint) and _of_array(finding):
        chosen = chosen.in_array(finding.checkpoint)
    with _workbench(chosen, finding.checkpoint, folder) as bench:
        return replay(finding, bench.system, oracle=bench.reference, policy=policy)


def _of_array(finding: FindingRecord) -> bool:
    """Whether its cases ran in the array: its shrunk one may set no secondary axis any more."""
    return finding.in_array or _in_array(row.cell for row in finding.truth_table)


def _in_array(cells: Iterable[Mapping[str, str]]) -> bool:
    """Whether some cell is no lattice cell: one sets a secondary axis."""
    return any(name not in AXES for cell in cells for name in cell)


@contextmanager
def _workbench(spec: RunSpec, name: str, folder: Path) -> Iterator[Workbench]:
    # Only a run with findings pays for torch and transformers in this process.
    from harness.campaign.workbench import Workbench  # noqa: PLC0415

    bench = Workbench(spec, name, folder)
    try:
        yield bench
    finally:
        bench.close()

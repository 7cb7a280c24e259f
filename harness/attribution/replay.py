"""A finding's truth table, run again."""

from __future__ import annotations

from typing import NamedTuple

from harness.attribution.gap import FixedLimits
from harness.attribution.laboratory import RACY_ATTEMPTS, Laboratory, Oracle
from harness.attribution.sets import switches
from harness.attribution.signature import Signature
from harness.attribution.wording import limit_of, settings_of
from harness.axes import Cell
from harness.case import case_from_json
from harness.record import FindingRecord, TruthRow
from harness.search import Budget
from harness.systems.base import System


class Replayed(NamedTuple):
    """What a finding's case does now."""

    failing: bool
    """Whether a minimal set that failed then fails now."""
    rows: tuple[TruthRow, ...]


def replay(
    finding: FindingRecord,
    system: System,
    *,
    oracle: Oracle | None = None,
    attempts: int = RACY_ATTEMPTS,
    policy: str | None = None,
) -> Replayed:
    """Run every cell of the truth table on the shrunk case, under the finding's settings.

    `system` is on the finding's checkpoint; whether the run's plants are in it is the caller's
    choice. `oracle` is needed for a baseline that was itself wrong. `attempts` of each cell where
    the failure depends on real concurrency. `policy`: instead of the finding's stream policy.
    """
    chosen = settings_of(finding) | ({} if policy is None else {"stream_policy": policy})
    signature = Signature.parse(finding.signature)
    limit = limit_of(finding)
    laboratory = Laboratory(
        system=system,
        checkpoint=finding.checkpoint,
        limits=FixedLimits(limit),
        budget=Budget(calls=0, seconds=0.0),
        oracle=oracle,
        attempts=attempts,
    )
    table = laboratory.table(
        case_from_json(finding.case),
        chosen,
        [Cell.of(row.cell) for row in finding.truth_table],
        signature.kind,
        oracle_limit=limit,
    )
    wanted = {frozenset(values) for values in finding.minimal_sets}
    failing = any(values <= switches(cell) for cell in table.bad for values in wanted)
    return Replayed(failing=failing, rows=table.rows)

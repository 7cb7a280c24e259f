"""Watching a shrunk case: its hidden states in the baseline and in the smallest failing cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.attribution.gap import Limits
from harness.attribution.laboratory import RACY_ATTEMPTS, Laboratory
from harness.attribution.probe import PolicyProbe
from harness.attribution.sets import switches
from harness.attribution.shrink import Shrunk
from harness.attribution.signature import FailureKind, is_racy
from harness.attribution.table import Table
from harness.axes import ALL_AXES, Cell, baseline, differing, inline, tier_between
from harness.localise import NOISE_FACTOR, Localisation, localise, noise
from harness.record import Tier
from harness.systems.base import SystemRun


def loosest_limit(table: Table, limits: Limits) -> float:
    """What cells of the looser tiers were held to; the largest of the case's prompts."""
    if table.kind is FailureKind.BASELINE:
        return max((state.limit for state in table.states.values()), default=0.0)
    if table.kind is not FailureKind.DIFFERENCE:
        return 0.0
    lengths = range(len(table.subject.lengths))
    return max(limits.limit(table.subject, Tier.KERNEL, index) for index in lengths)


class Watch:
    """Owns nothing; runs one shrunk case with taps on."""

    def __init__(self, shrunk: Shrunk, laboratory: Laboratory) -> None:
        self._shrunk, self._laboratory = shrunk, laboratory

    def localise(
        self, settings: Mapping[str, str], probes: Sequence[PolicyProbe]
    ) -> tuple[Localisation | None, tuple[str, ...]]:
        """Where the smallest failing cell parts from what it is wrong against, and what to know.

        Watching adds operations to the stream and so may hide a failure that hangs on the pace of
        things; it is then watched under another policy that makes the same cell fail.
        """
        table = self._shrunk.table
        cell = table.smallest_bad
        if cell is None or cell == baseline() or table.kind is not FailureKind.DIFFERENCE:
            return None, ()
        others = [
            probe.settings
            for probe in probes
            if not probe.racy and any(values <= switches(cell) for values in probe.sets)
        ]
        seen: Localisation | None = None
        for watched in (settings, *others):
            found = self._under(watched, cell)
            seen = seen or found
            if found is None or found.first is None:
                continue
            if watched is settings:
                return found, ()
            names = (watched["stream_policy"], settings["stream_policy"])
            return found, (
                "localised under {}: watched under {}, the failure does not show".format(*names),
            )
        return seen, ("not localised: while its layers are watched, the failure does not show",)

    def _under(self, settings: Mapping[str, str], cell: Cell) -> Localisation | None:
        runs = self._shrunk.table.runs
        near = self._shrunk.table.states[cell].against or baseline()
        tier = tier_between(differing(near, cell), runs[near].witness, runs[cell].witness)
        reference = self._tapped(near, settings)
        if reference is None:
            return None
        threshold = 0.0
        if tier is not Tier.EXACT:
            threshold = self._threshold(cell, reference, settings)
        found = None
        for _ in range(RACY_ATTEMPTS if is_racy(settings, self._shrunk.table.kind) else 1):
            other = self._tapped(cell, settings)
            found = None if other is None else localise(reference, other, threshold=threshold)
            if found is not None and found.first is not None:
                break
        return found

    def _threshold(self, cell: Cell, reference: SystemRun, settings: Mapping[str, str]) -> float:
        """100 times what rows of a good cell of the same kind are off, at least the limit."""
        limit = loosest_limit(self._shrunk.table, self._laboratory.limits)
        for value in sorted(
            switches(cell), key=lambda v: ALL_AXES[v.split("=")[0]].tier is Tier.KERNEL
        ):
            name = value.split("=")[0]
            near = cell.with_value(name, ALL_AXES[name].baseline)
            state = self._shrunk.table.states.get(near)
            if near == baseline() or state is None or not state.good:
                continue
            control = self._tapped(near, settings)
            if control is not None:
                return max(limit, NOISE_FACTOR * noise(reference, control))
        return limit

    def _tapped(self, cell: Cell, settings: Mapping[str, str]) -> SystemRun | None:
        system, run = self._laboratory.system, self._shrunk.table.runs[cell]
        alone = inline(settings)
        prompts = system.encode(self._shrunk.case)
        try:
            return system.open(cell, alone).run(
                self._shrunk.case, prompts, plan=run.plan or None, taps=True
            )
        except Exception:  # noqa: BLE001 - a cell that cannot be watched is reported unlocalised
            system.discard(cell, alone)
            return None

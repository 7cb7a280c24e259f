"""Taking measurements into the calibration: what may widen a bound, and what is refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.judge.bounds import Bounds
from harness.judge.calibration import FLOAT64, Calibration, Entry, text
from harness.judge.tolerance import ORACLE_CAP, TWIN_LIFT
from harness.record import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A calibration that was, and what it becomes."""

    before: tuple[Entry, ...]
    after: tuple[Entry, ...]
    refused: tuple[str, ...]
    """One sentence for each entry that may not go in; none of the others does then."""

    @property
    def text(self) -> str:
        """The whole file as it becomes."""
        return text(self.after)

    def diff(self, name: str) -> str:
        """The change as a unified diff of the file's lines; empty when nothing changes."""
        old, new = (text(e).splitlines(keepends=True) for e in (self.before, self.after))
        return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=0))


def approve(current: Sequence[Entry], proposed: Iterable[Entry]) -> Approval:
    """`proposed` replaces what `current` holds for the same place."""
    merged = {entry.place: entry for entry in current}
    new = list(proposed)
    merged.update({entry.place: entry for entry in new})
    bounds = Bounds(calibration=Calibration.of(merged.values()))
    refused = [reason for entry in new if (reason := _refusal(entry, bounds))]
    after = tuple(merged[place] for place in sorted(merged))
    return Approval(before=tuple(current), after=after, refused=tuple(refused))


def _refusal(entry: Entry, bounds: Bounds) -> str:
    key, quantile = entry.key, entry.null.quantile
    where = f"{key.checkpoint}, {key.dtype}, {key.kind}, {key.bucket} tokens, {entry.pairs}"
    if entry.pairs == FLOAT64:
        allowed = TWIN_LIFT * ORACLE_CAP[key.dtype, key.kind].floor
        what = "the furthest that a baseline may be from float64"
    else:
        allowed = bounds.bound(Tier.REORDERED, key).oracle
        what = "the oracle bound: such runs are not known to be good"
    if quantile <= allowed:
        return ""
    return f"{where}: measured {quantile:.3g}, beyond {allowed:.3g}, {what}"

"""When a stream policy can promise that steps overlap: known before the run, from settings alone.

Under most policies a step's result is complete by the time the next step is submitted, so `async`
cannot act there however the scheduler is set; such pairs are INAPPLICABLE, not VACUOUS.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.axes.base import CellLike

_IN_STEP = {
    "immediate": "operations run as they are submitted",
    "paced": "the device may keep up with the host",
    "drawn": "whether steps overlap depends on the draw",
}


def cannot_overlap(cell: CellLike, settings: Mapping[str, str]) -> str | None:
    """Why `async=async` cannot be promised to act in this cell under these settings; else None."""
    if cell.get("async") != "async":
        return None
    policy = settings.get("stream_policy", "threaded")
    inputs = cell.get("buffers", settings.get("inputs"))
    reason = _IN_STEP.get(policy.partition("(")[0])
    if policy.startswith("lag(compute"):
        # The copy stream does not lag, so it waits for its step's rows as soon as it is submitted.
        reason = "the copy of each result runs its step at submission"
    if policy == "threaded" and inputs == "fenced" and cell.get("pp") != "1":
        # A stage gets its one staging buffer back only after it has finished the step before.
        reason = "one fenced staging buffer holds every stage to one step ahead"
    return None if reason is None else f"async cannot act under stream_policy={policy}: {reason}"

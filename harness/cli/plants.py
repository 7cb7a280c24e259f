"""From the names of planted faults to the plug-ins that plant them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli.errors import UsageError
from harness.faults import FAULTS


def plugins_of(names: Sequence[str]) -> tuple[str, ...]:
    """Plug-in of each fault. UsageError lists the faults there are."""
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        raise UsageError(f"unknown plant {', '.join(unknown)}; valid: {', '.join(sorted(FAULTS))}")
    return tuple(FAULTS[name].plugin for name in names)

"""Planted defects, one file each; this is their table."""

from __future__ import annotations

from collections.abc import Mapping

from harness.faults import stage_skips_poststep, stale_input_buffer, unowned_token_rows
from harness.faults.base import Fault

FAULTS: Mapping[str, Fault] = {
    module.FAULT.name: module.FAULT
    for module in (stale_input_buffer, unowned_token_rows, stage_skips_poststep)
}


def fault(name: str) -> Fault:
    """The fault of that name. Raises KeyError with the valid names in its message."""
    try:
        return FAULTS[name]
    except KeyError:
        raise KeyError(f"unknown plant {name!r}; valid: {', '.join(sorted(FAULTS))}") from None

"""For every suite file a break that it must notice: one table here for each package of suites.

A table is a module with `BREAKS`, a tuple. It is found by being here. At its top it imports nothing
of the code under test: what is imported before a break is planted may have copied what it replaces.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from suites.meta.planting.defect import Break


def _gathered() -> dict[str, Break]:
    """Every table's breaks by name."""
    found: dict[str, Break] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        for planted in importlib.import_module(f"{__name__}.{module}").BREAKS:
            if planted.name in found:
                raise ValueError(
                    f"expected another name for a break of {planted.suite}, got {planted.name!r}, "
                    f"which {found[planted.name].suite} has; take a name of its own"
                )
            found[planted.name] = planted
    return found


BREAKS: Final = _gathered()

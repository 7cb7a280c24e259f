"""Planted defects, one file for each class of public bugs; this is their table."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from harness.faults import (
    buffers,
    compiling,
    dtypes,
    heads,
    links,
    masks,
    norms,
    ownership,
    pooling,
    positions,
    rows,
    state,
    tokens,
)
from harness.faults.base import Fault

MODULES: tuple[ModuleType, ...] = (
    buffers,
    ownership,
    state,
    rows,
    masks,
    positions,
    pooling,
    norms,
    dtypes,
    heads,
    tokens,
    compiling,
    links,
)


def faults_in(module: ModuleType) -> tuple[Fault, ...]:
    """The faults that a module declares, in its order."""
    return tuple(value for value in vars(module).values() if isinstance(value, Fault))


FAULTS: Mapping[str, Fault] = {
    fault.name: fault for module in MODULES for fault in faults_in(module)
}


def fault(name: str) -> Fault:
    """The fault of that name. Raises KeyError with the valid names in its message."""
    try:
        return FAULTS[name]
    except KeyError:
        raise KeyError(f"unknown plant {name!r}; valid: {', '.join(sorted(FAULTS))}") from None

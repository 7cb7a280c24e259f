"""Systems by name: those of this package, those that installed packages offer, and any file.

A name is one of `SYSTEMS`, an entry point of the group `parity.systems`, or `PLACE:FACTORY` where
PLACE is a Python file or a module. A factory takes an `Assignment` and returns a `System`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from harness.systems.base import Factory, SystemUnavailable

GROUP = "parity.systems"
SYSTEMS: Mapping[str, str] = {
    "engine": "harness.systems.engine:engine",
    "hf": "harness.systems.hf:hf",
    "sbert": "harness.systems.sbert:sbert",
    "http": "harness.systems.http:http",
    "vllm": "harness.systems.vllm.system:vllm",
}
"""Name -> `module:factory`; a module is loaded when its system is wanted."""


def names() -> tuple[str, ...]:
    """Names that `factory` takes without a place."""
    return (*SYSTEMS, *sorted(_offered()))


def factory(name: str) -> Factory:
    """The system's factory. Raises SystemUnavailable with the valid names, or what is missing."""
    place = SYSTEMS.get(name)
    if place is None and name in _offered():
        return _callable(name, _offered()[name].load())
    if place is None and ":" not in name:
        raise SystemUnavailable(
            f"system {name!r} is unknown; valid: {', '.join(names())}, or FILE.py:FACTORY"
        )
    where, _, attribute = (place or name).rpartition(":")
    try:
        module = _file(where) if where.endswith(".py") else importlib.import_module(where)
    except ModuleNotFoundError as error:
        raise SystemUnavailable(
            f"system {name!r} needs the package {error.name!r}, which is not installed: "
            f"pip install {error.name}"
        ) from error
    found = getattr(module, attribute, None)
    if found is None:
        raise SystemUnavailable(f"system {name!r}: {where} has no {attribute!r}")
    return _callable(name, found)


def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _callable(name: str, found: object) -> Factory:
    if not callable(found):
        raise SystemUnavailable(f"system {name!r}: {found!r} is no factory, it cannot be called")
    return found


def _file(where: str) -> ModuleType:
    path = Path(where).resolve()
    name = f"parity_system_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SystemUnavailable(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and spawned processes look their module up
    spec.loader.exec_module(module)
    return module

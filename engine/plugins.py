"""Plug-ins: callables named in the configuration that every worker applies to its runner.

A plug-in is `apply(runner) -> undo`: it may replace methods on the runner or on anything the
runner holds, and returns a callable that puts them back. The engine has no other hook; how a
fault, a probe or an experiment gets in is the plug-in's business.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import ConfigurationError

if TYPE_CHECKING:
    from engine.runner import Runner

Undo = Callable[[], None]
Plugin = Callable[["Runner"], Undo]


def load_plugin(name: str) -> Plugin:
    """`package.module:callable` -> the callable. ConfigurationError when it cannot be had."""
    module_name, separator, attribute = name.partition(":")
    if not separator or not attribute:
        raise ConfigurationError(f"plugin={name!r} is not 'package.module:callable'")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(
            f"plugin={name!r}: cannot import {module_name}: {error}"
        ) from error
    plugin = getattr(module, attribute, None)
    if not callable(plugin):
        names = sorted(n for n in vars(module) if callable(getattr(module, n)) and n[0] != "_")
        raise ConfigurationError(
            f"plugin={name!r}: {module_name} has no callable {attribute!r}; it has {names}"
        )
    found: Plugin = plugin
    return found


class Plugins:
    """Owns: the plug-ins applied to one runner and how to undo each."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._undo: dict[str, Undo] = {}

    def apply(self, name: str) -> None:
        if name in self._undo:
            raise ConfigurationError(f"plugin={name!r} is already applied")
        self._undo[name] = load_plugin(name)(self._runner)

    def remove(self, name: str) -> None:
        undo = self._undo.pop(name, None)
        if undo is None:
            raise ConfigurationError(
                f"plugin={name!r} is not applied; applied: {sorted(self._undo)}"
            )
        undo()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._undo)

"""Puts a break in place: at the moment its module is imported, in this process and in its children.

At that moment, because names are copied by `from module import name`: what is replaced later is
replaced too late. Children read the environment through `site/sitecustomize.py`.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[3]
NAME: Final = "SUITES_BREAK"
AT: Final = "SUITES_BREAK_AT"
PACKAGES: Final = ("engine", "harness", "reports", "suites")

Change = Callable[[Any], Any]


def hand_down(environment: MutableMapping[str, str], name: str, at: str) -> None:
    """Children that get this environment plant the break of this name, too."""
    site = Path(__file__).with_name("site")
    path = (str(site), str(ROOT), environment.get("PYTHONPATH", ""))
    environment |= {NAME: name, AT: at, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def holder_of(module: ModuleType, path: str) -> tuple[Any, str]:
    """The module or class that holds the last name of a dotted path, and that name."""
    *owners, name = path.split(".")
    holder: Any = functools.reduce(getattr, owners, module)
    inspect.getattr_static(holder, name)  # raises AttributeError where there is none
    return holder, name


def replace(module: ModuleType, path: str, instead: Change) -> tuple[Any, Any]:
    """Replace the attribute at `path`; returns what stood there and what stands there now."""
    holder, name = holder_of(module, path)
    right = inspect.getattr_static(holder, name)
    wrong: Any
    if isinstance(right, classmethod | staticmethod):
        wrong = type(right)(instead(right.__func__))
    elif isinstance(right, property):
        wrong = property(instead(right.fget))
    elif isinstance(right, functools.cached_property):
        wrong = functools.cached_property(instead(right.func))
        wrong.__set_name__(holder, name)
    else:
        wrong = instead(right)
    setattr(holder, name, wrong)
    return right, wrong


class Planter(importlib.abc.MetaPathFinder):
    """Replaces one attribute as soon as its module has been executed."""

    def __init__(self, at: str, instead: Callable[[], Change]) -> None:
        """`instead` is asked for only when the module comes: its own imports may be large."""
        self._module, _, self._path = at.partition(":")
        self._instead = instead
        self.done = False

    def install(self) -> None:
        """Wait for the module, or replace at once what other modules have copied already."""
        sys.meta_path.insert(0, self)
        self.loaded()

    def loaded(self) -> None:
        """Replace the attribute if its module was imported by ways that this finder cannot see."""
        module = sys.modules.get(self._module)
        if self.done or module is None:
            return
        right, wrong = self._plant(module)
        for name, other in list(sys.modules.items()):
            if name.split(".")[0] in PACKAGES and other is not module:
                copies = [key for key, found in vars(other).items() if found is right]
                for key in copies:
                    setattr(other, key, wrong)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that the other finders have for the module, with a loader that plants."""
        if fullname != self._module or self.done:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, self._plant)  # type: ignore[assignment]
                return spec
        return None

    def _plant(self, module: ModuleType) -> tuple[Any, Any]:
        self.done = True
        return replace(module, self._path, self._instead())


class _Loader:
    """A loader that lets another do all the work, and plants once the module has run."""

    def __init__(self, inner: Any, then: Callable[[ModuleType], object]) -> None:
        self._inner = inner
        self._then = then

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        self._then(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

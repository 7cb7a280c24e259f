"""What other distributions add: axes, relations and checks, by entry point.

A distribution names an object of its own in its `pyproject.toml`:

    [project.entry-points."pooling_parity.relations"]
    reversal = "their_package.relations:REVERSAL"

Once it is installed the object stands in the table beside ours, under the name that it has itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

PREFIX = "pooling_parity"

T = TypeVar("T")


class RegistryError(RuntimeError):
    """An entry point that cannot be used; the message names its distribution."""


class Table(Mapping[str, T], Generic[T]):
    """Owns: our objects of one kind by name, and behind them those of other distributions.

    Theirs are loaded at the first look, not at import: their modules import ours. Whoever looks
    gets a RegistryError for one that does not load, is no `kind`, has another name than its entry
    point, or a name that stands in the table already.
    """

    def __init__(self, group: str, kind: type[T], ours: Mapping[str, T]) -> None:
        self.ours = dict(ours)
        self._group, self._kind = group, kind
        self._all: dict[str, T] | None = None

    def __getitem__(self, name: str) -> T:
        return self._loaded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())

    def _loaded(self) -> dict[str, T]:
        if self._all is None:
            found = dict(self.ours)
            points = entry_points(group=f"{PREFIX}.{self._group}")
            for point in sorted(points, key=lambda p: (p.name, p.value)):
                found[point.name] = self._load(point, found)
            self._all = found
        return self._all

    def _load(self, point: EntryPoint, found: Mapping[str, T]) -> T:
        where, kind = _where(point), self._kind.__name__
        try:
            thing = point.load()
        except Exception as error:
            raise RegistryError(
                f"{where} does not load: {type(error).__name__}: {error}; fix it or uninstall the "
                "distribution"
            ) from error
        if not isinstance(thing, self._kind):
            raise RegistryError(f"{where} is a {type(thing).__name__}, expected a {kind}")
        name = getattr(thing, "name", point.name)
        if name != point.name:
            raise RegistryError(f"{where} calls itself {name!r}; give both the same name")
        if name in found:
            owner = "pooling-parity itself" if name in self.ours else "another distribution"
            raise RegistryError(f"{where}: {owner} has a {kind} of that name already")
        return thing


def _where(point: EntryPoint) -> str:
    name = point.dist.name if point.dist is not None else "an unknown distribution"
    return f"{point.group} {point.name!r} of {name} ({point.value})"

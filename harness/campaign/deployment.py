"""A named way of running a model: a TOML file, or the address of a server.

system = "vllm"            # as --system; default: engine
model = "minilm"           # checkpoint of the catalogue, whose tokenizer counts the tokens
dtype = "float32"
[cell]                     # values of axes; those left out are at their baseline
chunk = "chunked"
[sizes]                    # chunk, max_num_seqs, max_model_len
chunk = 64
[options]                  # the system's own, passed through
enable_prefix_caching = true
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.axes import ALL_AXES, AxisError, Cell, baseline
from harness.case import CaseError
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.systems.base import Assignment, System
from harness.systems.table import factory

SIZES: Mapping[str, int] = {"chunk": 512, "max_num_seqs": 8, "max_model_len": 4096}
"""With what they are when the file does not say."""
_KEYS = ("system", "model", "dtype", "cell", "sizes", "options")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One side of a comparison."""

    name: str
    system: str
    model: str
    dtype: str = "float32"
    cell: Cell = field(default_factory=baseline)
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, *, timeout_s: float) -> System:
        """The system, not started yet. Raises SystemUnavailable."""
        known = checkpoint(self.model)
        sizes = {**SIZES, **self.sizes}
        return factory(self.system)(
            Assignment(
                checkpoint=known,
                folder=path_of(self.model),
                chunk=sizes["chunk"],
                max_num_seqs=sizes["max_num_seqs"],
                max_model_len=min(sizes["max_model_len"], known.max_length),
                timeout_s=timeout_s,
                dtype=self.dtype,
                options=self.options,
            )
        )


def read_deployment(place: str, *, model: str | None) -> Deployment:
    """From a URL, or from a TOML file. `model`: where the file names none. Raises CaseError."""
    if place.startswith(("http://", "https://")):
        return Deployment(
            name=place, system="http", model=_model(place, None, model), options={"url": place}
        )
    path = Path(place)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaseError(f"cannot read a deployment from {place}: {error}") from error
    unknown = sorted(set(data) - set(_KEYS))
    if unknown:
        raise CaseError(f"{place}: unknown key {unknown}; valid: {', '.join(_KEYS)}")
    cell, sizes = data.get("cell", {}), data.get("sizes", {})
    wrong = sorted(set(sizes) - set(SIZES))
    if wrong or not all(isinstance(n, int) and n > 0 for n in sizes.values()):
        raise CaseError(f"{place}: sizes are whole numbers for {', '.join(SIZES)}, got {sizes}")
    return Deployment(
        name=path.stem,
        system=str(data.get("system", "engine")),
        model=_model(place, data.get("model"), model),
        dtype=str(data.get("dtype", "float32")),
        cell=_cell(place, cell),
        sizes=sizes,
        options=data.get("options", {}),
    )


def _model(place: str, own: str | None, given: str | None) -> str:
    chosen = own or given
    if chosen is None:
        raise CaseError(f"{place}: which model? Say `model` in the file, or --model NAME")
    checkpoint(chosen)
    return chosen


def _cell(place: str, values: Mapping[str, Any]) -> Cell:
    found = baseline()
    for name, value in values.items():
        if name not in ALL_AXES:
            raise AxisError(f"{place}: unknown axis {name!r}; valid: {', '.join(ALL_AXES)}")
        found = found.with_value(name, ALL_AXES[name].check(str(value)))
    return found

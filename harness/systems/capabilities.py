"""Which checkpoint takes which value of which axis, and what is said of those that it refuses.

Asked of a system that tells its refusals before it is started, so no weight is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from harness.axes import ALL_AXES, Axis, Startable
from harness.axes.startable import Combination
from harness.checkpoints.catalogue import checkpoint, path_of
from harness.systems.base import Assignment, Selective, SystemUnavailable
from harness.systems.table import factory

OF_THE_MACHINE: Mapping[str, str] = {"attention": "triton"}
"""axis -> the value that the machine decides about, whatever the checkpoint."""
CHUNK, MAX_SEQS, LENGTH = 16, 2, 128


def axes_of_models() -> tuple[Axis, ...]:
    """Every axis, without the values that depend on the machine."""
    return tuple(
        replace(axis, values=tuple(v for v in axis.values if v != OF_THE_MACHINE.get(axis.name)))
        for axis in ALL_AXES.values()
    )


@dataclass(frozen=True, kw_only=True)
class Capability:
    """What a system refuses on one checkpoint."""

    name: str
    architecture: str
    axes: tuple[Axis, ...]
    startable: Startable

    @classmethod
    def of(cls, system: str, name: str) -> Capability:
        """Ask a system about a checkpoint of the catalogue.

        Raises SystemUnavailable for one that tells its refusals only when it is started.
        """
        folder, axes = path_of(name), axes_of_models()
        found = factory(system)(
            Assignment(
                checkpoint=checkpoint(name),
                folder=folder,
                chunk=CHUNK,
                max_num_seqs=MAX_SEQS,
                max_model_len=LENGTH,
            )
        )
        if not isinstance(found, Selective):
            raise SystemUnavailable(f"{system} tells what it refuses only when it is started")
        try:
            startable = Startable(axes, found.refusal)
        finally:
            found.close()
        return cls(name=name, architecture=_architecture(folder), axes=axes, startable=startable)

    @cached_property
    def refused(self) -> Mapping[Combination, str]:
        """Values, and pairs of values, that are refused -> the reason, the checkpoint unnamed."""
        return {
            values: reason.replace(self.name, "the checkpoint")
            for values, reason in self.startable.refused.items()
        }


def _architecture(folder: Path) -> str:
    """As transformers names it, from `config.json`."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return str(config["architectures"][0])


def markdown(capabilities: Sequence[Capability]) -> str:
    """A document: checkpoint x axis -> tier or refusal, the reasons, and what goes not together."""
    reasons = list(dict.fromkeys(_single_reasons(capabilities)))
    axes = capabilities[0].axes
    lines = [
        "# What each family can be run with",
        "",
        "Written by `parity axes --markdown`, from the axes and from what our engine itself",
        "refuses at start-up; a test holds this file to it. A cell says what a difference in the",
        "axis is held to: `exact` to 0 ulp, `reordered` and `kernel` to a bound from float64.",
        "`suites/parity/test_every_axis.py` runs every value of the rows called tiny, and any two",
        "together.",
        "",
        *_table(
            ("family", "checkpoint", *(axis.name for axis in axes)), _rows(capabilities, reasons)
        ),
        "",
        "## Refused",
        "",
        *(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1)),
        "",
        "What the machine decides, whatever the family: "
        + ", ".join(f"`{name}={value}`" for name, value in OF_THE_MACHINE.items())
        + " needs a GPU, or Triton's interpreter.",
        "",
        "## Refused together",
        "",
        *_table(("values", "reason"), _together(capabilities)),
        "",
        "## Axes",
        "",
        *_table(
            ("axis", "values, baseline first", "held to", "meaning"),
            [
                (axis.name, ", ".join(axis.values), str(axis.tier), axis.meaning)
                for axis in ALL_AXES.values()
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _single_reasons(capabilities: Iterable[Capability]) -> Iterator[str]:
    for found in capabilities:
        yield from (reason for values, reason in found.refused.items() if len(values) == 1)


def _rows(capabilities: Sequence[Capability], reasons: Sequence[str]) -> list[tuple[str, ...]]:
    return [
        (found.architecture, found.name, *(_held(found, axis, reasons) for axis in found.axes))
        for found in capabilities
    ]


def _held(found: Capability, axis: Axis, reasons: Sequence[str]) -> str:
    """`exact`, `refused (1)`, or `exact; 64 refused (2)`."""
    refused = {
        value: reasons.index(found.refused[((axis.name, value),)]) + 1
        for value in axis.values
        if ((axis.name, value),) in found.refused
    }
    numbers = ", ".join(str(number) for number in sorted(set(refused.values())))
    if len(refused) == len(axis.values) - 1:
        return f"refused ({numbers})"
    parts = [str(axis.tier), *(f"{value} refused ({n})" for value, n in refused.items())]
    return "; ".join(parts)


def _together(capabilities: Sequence[Capability]) -> list[tuple[str, str]]:
    """(pairs of values, their reason), of every family that does not refuse one of the two."""
    found: dict[str, list[str]] = {}
    for capability in capabilities:
        for values, reason in capability.refused.items():
            told = " and ".join(f"`{name}={value}`" for name, value in values)
            if len(values) == 2 and told not in found.setdefault(reason, []):
                found[reason].append(told)
    return [(", ".join(pairs), reason) for reason, pairs in found.items()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]

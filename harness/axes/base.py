"""What an axis is: named values, the tier their results are held to, and the proof that they acted.

A cell is a mapping of axis name to value. Both checks get the whole cell, since what one axis can
do depends on the others (async looks one step further ahead for every pipeline stage).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.axes.evidence import Evidence, Json, explain
from harness.record import AxisInfo, Tier

CellLike = Mapping[str, str]
Plan = Sequence[Sequence[Sequence[Json]]]
"""step -> entry -> [request_id, start, count, total], as records carry it."""


class AxisError(ValueError):
    """An axis or a value that does not exist, with the valid ones."""


def always(cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:  # noqa: ARG001
    """The reach of an axis that can act on any case."""
    return None


def never(cell: CellLike) -> str | None:  # noqa: ARG001
    """Of an axis whose values can act in every cell."""
    return None


def attested_batch_invariant(a: Mapping[str, Json], b: Mapping[str, Json]) -> bool:
    """Whether both runs attest that neither chunks nor company may change a bit."""
    return all((w.get("flags") or {}).get("batch_invariant") == "on" for w in (a, b))


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One way of running the same work differently.

    `witness(cell, evidence)` reads what a run in `cell` did and returns None when this axis' value
    took effect, else why not. It is as strict about the baseline value as about the other: a system
    that always compiles is caught in its eager cell.

    `reach(cell, lengths, plan)` returns None when the value can act on a case of these prompt
    lengths under this plan, else why it cannot; it looks at nothing that is only known afterwards.

    `exact_when(a, b)`: whether two runs attest a mode in which this axis may not change a bit.

    `replans`: its values make different step plans by their nature, so cells that differ in it
    are not held to one recorded plan.

    `flag`: the entry of a witness' flags that its values set, in which sides that differ in this
    axis may differ as well.

    `idle(cell)`: why the value cannot act in the cell, whatever the case; None: it can.

    `beside`: values of other axes without which its own cannot act.

    `setting`: the setting that decides instead where a cell does not name the axis.
    """

    name: str
    values: tuple[str, ...]
    baseline: str
    tier: Tier
    meaning: str
    witness: Callable[[CellLike, Evidence], str | None]
    reach: Callable[[CellLike, Sequence[int], Plan], str | None] = always
    idle: Callable[[CellLike], str | None] = never
    exact_when: Callable[[Mapping[str, Json], Mapping[str, Json]], bool] | None = None
    replans: bool = False
    flag: str | None = None
    beside: Mapping[str, str] = field(default_factory=dict)
    setting: str | None = None

    def __post_init__(self) -> None:
        if self.baseline not in self.values or len(set(self.values)) != len(self.values):
            raise AxisError(
                f"axis {self.name}: baseline={self.baseline!r} must be one of the distinct values "
                f"{self.values}"
            )

    def value(self, cell: CellLike) -> str:
        """The axis' value in a cell; a cell that does not name the axis is at the baseline."""
        return self.check(cell.get(self.name, self.baseline))

    def check(self, value: str) -> str:
        """The value itself. Raises AxisError for one that this axis does not have."""
        if value not in self.values:
            raise AxisError(f"{self.name}={value!r} is unknown; valid: {', '.join(self.values)}")
        return value

    def witnessed(self, cell: CellLike, witness: Mapping[str, Json]) -> str | None:
        """None when `cell[name]` took effect in the run that left this witness; else the reason."""
        value = self.value(cell)
        reason = explain(lambda evidence: self.witness(cell, evidence), witness)
        return None if reason is None else f"{self.name}={value} did not take effect: {reason}"

    def applicable(self, cell: CellLike, lengths: Sequence[int], plan: Plan) -> str | None:
        """None when `cell[name]` can act on the case; else why not. The baseline always can."""
        value = self.value(cell)
        if value == self.baseline:
            return None
        reason = self.idle(cell) or self.reach(cell, lengths, plan)
        return None if reason is None else f"{self.name}={value} cannot act: {reason}"

    def tier_between(self, a: Mapping[str, Json], b: Mapping[str, Json]) -> Tier:
        """The tier for two runs with these witnesses."""
        if self.exact_when is not None and self.exact_when(a, b):
            return Tier.EXACT
        return self.tier

    @property
    def info(self) -> AxisInfo:
        """What the run's manifest says of this axis."""
        return AxisInfo(
            name=self.name,
            values=self.values,
            baseline=self.baseline,
            tier=self.tier,
            meaning=self.meaning,
        )

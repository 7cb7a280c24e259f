"""What was measured on the comparisons of a finding: values, ulps, and float64's opinion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.record import Measurement, PairRecord
from reports.view.cells import differing
from reports.view.margins import severity
from reports.view.text import number, quantity, share_of_bound

ULP_PREFIX, ULP_SUFFIX = "elements off by ", " ulp"
"""Of the measurements that make up a histogram of distances in ulp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRow:
    """One measurement of a finding's worst pair."""

    metric: str
    value: str
    bound: str
    share: str
    exceeded: bool
    why: str


def worst_pair(pairs: list[PairRecord], metric: str) -> PairRecord | None:
    def how_bad(pair: PairRecord) -> float:
        return max(
            (severity(m.value, m.bound) for m in pair.measurements if m.metric == metric),
            default=-2.0,
        )

    return max(pairs, key=how_bad) if pairs else None


def sides(pair: PairRecord) -> tuple[str, str]:
    """`eager/whole`, `compiled/chunked`: what the two cells differ in; A and B where in nothing."""
    axes = differing(pair.cell_a, pair.cell_b) if pair.cell_a else ()
    if not axes:
        return "A", "B"

    def name(cell: Mapping[str, str]) -> str:
        values = ((axis, cell.get(axis, "")) for axis in axes)
        return "/".join(f"{axis}={value}" if value.isdigit() else value for axis, value in values)

    return name(pair.cell_a), name(pair.cell_b)


def oracle(measures: Sequence[Measurement], names: tuple[str, str] = ("A", "B")) -> str:
    """Never who is wrong: the oracle can be wrong too. `names`: reference side, other side."""
    a, b = names
    values = {m.metric: m.value for m in measures}
    mine, theirs = values.get("oracle_error"), values.get("oracle_error_reference")
    if mine is None or theirs is None:
        return ""
    told = f"{a} is {number(theirs)} off, {b} {number(mine)}"
    if mine == theirs:
        return f"Against float64 both sides are equally far: {told}."
    near, other = (a, b) if theirs < mine else (b, a)
    if not min(mine, theirs):
        return f"Against float64, {near} is nearer: {told}."
    far = max(mine, theirs) / min(mine, theirs)
    return f"Against float64, {near} is nearer: {told}; {other} is {number(far)} times as far."


def ulps(pairs: Sequence[PairRecord]) -> tuple[tuple[str, int], ...]:
    """Of the comparison with the most elements that differ."""
    found: list[tuple[int, tuple[tuple[str, int], ...]]] = []
    for pair in pairs:
        named = {m.metric: m.value for m in pair.measurements}
        bars = tuple(
            (metric.removeprefix(ULP_PREFIX).removesuffix(ULP_SUFFIX), int(value))
            for metric, value in named.items()
            if metric.startswith(ULP_PREFIX) and metric.endswith(ULP_SUFFIX)
        )
        if bars:
            found.append((sum(n for _, n in bars), bars))
    return max(found, default=(0, ()))[1]


def measure_row(m: Measurement) -> MeasureRow:
    return MeasureRow(
        metric=m.metric,
        value=quantity(m.value, m.unit),
        bound="none: for information" if m.bound is None else quantity(m.bound, m.unit),
        share=share_of_bound(m.value, m.bound),
        exceeded=m.exceeded,
        why=m.why,
    )

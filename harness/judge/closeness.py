"""The comparison proper: how far apart two runs are, and which of them float64 agrees with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.judge import lists
from harness.judge.bounds import Bounds
from harness.judge.distances import Distances, distances, furthest
from harness.judge.metrics import (
    bit_difference,
    error,
    max_abs,
    norm_ratio,
    one_minus_cosine,
)
from harness.judge.output import Float64, Output, OutputKind, Outputs
from harness.judge.subject import Subject
from harness.record import Measurement, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """What comparing two structurally equal sets of outputs showed."""

    failure: str
    """Empty, or the sentence that says what differs."""
    measurements: tuple[Measurement, ...]
    warnings: tuple[str, ...]
    worst_prompt: int | None


def _largest(values: list[float]) -> int:
    return max(range(len(values)), key=lambda index: values[index])


def nearer(error_a: float, error_b: float, metric: str) -> str:
    """What a difference is told as: which side float64 is nearer to, never who is wrong."""
    if error_a == error_b:
        return f"against float64, both are equally far ({metric} {error_a:.3g})"
    side = "A" if error_a < error_b else "B"
    return f"against float64, {side} is nearer ({metric} A {error_a:.3g}, B {error_b:.3g})"


def _informative(subject: Subject, a: Outputs, b: Outputs) -> list[Measurement]:
    """Numbers that explain a difference and decide nothing."""
    pairs = list(zip(a, b, strict=True))
    found = [Measurement(metric="max_abs", value=_worst(max_abs, pairs))]
    if subject.kind.vector:
        found.append(Measurement(metric="one_minus_cosine", value=_worst(one_minus_cosine, pairs)))
        found.append(Measurement(metric="norm_ratio", value=_worst(norm_ratio, pairs)))
    return found


def _worst(
    metric: Callable[[Float64, Float64], Float64], pairs: Sequence[tuple[Output, Output]]
) -> float:
    return max(float(np.max(metric(y.rows, x.rows))) for x, y in pairs)


def exact(subject: Subject, a: Outputs, b: Outputs, oracle: Outputs | None) -> Closeness:
    """Not a bit may differ; where one does, the ULP histogram shows what kind of difference."""
    differences = [bit_difference(x, y) for x, y in zip(a, b, strict=True)]
    total = sum(d.differing for d in differences)
    ulp = max(d.max_ulp for d in differences)
    why = "the same plan, shapes, threads, instruction set and flags are attested"
    measurements = [
        Measurement(metric="differing_elements", value=float(total), bound=0.0, why=why),
        Measurement(metric="max_ulp", value=float(ulp), bound=0.0, unit="ulp", why=why),
    ]
    if total == 0:
        return Closeness(
            failure="", measurements=tuple(measurements), warnings=(), worst_prompt=None
        )
    histogram: dict[str, int] = {}
    for difference in differences:
        for label, count in difference.histogram.items():
            histogram[label] = histogram.get(label, 0) + count
    for label in sorted(histogram, key=lambda text: int(text.split("-")[0])):
        measurements.append(
            Measurement(metric=f"elements off by {label} ulp", value=float(histogram[label]))
        )
    kind = subject.kind
    errors = [error(kind, y, x) for x, y in zip(a, b, strict=True)]
    # A sign of zero is a bit that differs at no distance: then the first such prompt is the worst.
    worst = _largest(errors if any(errors) else [float(d.differing) for d in differences])
    measurements.append(Measurement(metric=kind.metric, value=errors[worst]))
    between = lists.measured(subject, a, b, 0.0)
    measurements += [*_informative(subject, a, b), *between]
    failure = f"prompt {worst}: A and B differ in {total} elements by up to {ulp} ulp"
    if oracle is not None:
        error_a, error_b = (error(kind, side[worst], oracle[worst]) for side in (a, b))
        measurements += [
            Measurement(metric="oracle_error", value=error_b),
            Measurement(metric="oracle_error_reference", value=error_a),
        ]
        failure += f"; {nearer(error_a, error_b, kind.metric)}"
    return Closeness(
        failure=failure, measurements=tuple(measurements), warnings=(), worst_prompt=worst
    )


def bounded(
    subject: Subject, tier: Tier, a: Outputs, b: Outputs, oracle: Outputs, bounds: Bounds
) -> Closeness:
    """Reordered and kernel tiers: held to float64, and where measured to the null as well."""
    found = distances(subject, tier, a, b, oracle, bounds)
    worst = {kind: furthest(prompts) for kind, prompts in found.items()}
    rows, *wholes = worst.values()
    failed = next((w for w in worst.values() if w.failed), None)
    measurements = [
        *_measurements(rows),
        *(m for whole in wholes for m in _measurements(whole, "matrix_")),
        *_informative(subject, a, b),
    ]
    widest = max(p.bound.oracle for p in found[subject.kind])
    between = lists.measured(subject, a, b, widest)
    measurements += between
    failure = lists.failures(between)
    if failed is not None:
        metric = failed.kind.metric
        told = (
            f"prompt {failed.prompt}: A and B differ ({metric} {failed.apart:.3g}); "
            f"{nearer(failed.a, failed.b, metric)}, bound {failed.bound.oracle:.3g}"
        )
        failure = "; ".join(filter(None, (told, failure)))
    crossed = lists.crossings(subject, a, b, bounds.rules.thresholds)
    return Closeness(
        failure=failure,
        measurements=tuple(measurements),
        warnings=(*_warnings([p for prompts in found.values() for p in prompts]), *crossed),
        worst_prompt=(failed or rows).prompt,
    )


def _measurements(worst: Distances, prefix: str = "") -> tuple[Measurement, ...]:
    shared = "distance of A and B, as a share of the oracle's norm" if worst.kind.vector else ""
    return (
        Measurement(
            metric=worst.kind.metric,
            value=worst.apart,
            bound=worst.bound.null,
            why="; ".join(filter(None, (shared, worst.bound.null_why))),
        ),
        Measurement(
            metric=f"{prefix}oracle_error",
            value=worst.b,
            bound=worst.bound.oracle,
            why=worst.bound.why,
        ),
        Measurement(metric=f"{prefix}oracle_error_reference", value=worst.a, why=worst.bound.why),
    )


def _warnings(prompts: Sequence[Distances]) -> tuple[str, ...]:
    found = []
    for p in prompts:
        whole = ", whole matrix" if p.kind is OutputKind.TOKEN_MATRIX else ""
        where = f"prompt {p.prompt}{whole}"
        if p.failed:
            continue
        if p.beyond_null:
            found.append(
                f"{where}: A and B are {p.apart:.3g} apart, more than known-good runs "
                f"({p.bound.null:.3g}), but both are within the oracle bound"
            )
        elif p.beyond_oracle:
            found.append(
                f"{where}: beyond the oracle bound ({max(p.a, p.b):.3g} > "
                f"{p.bound.oracle:.3g}), but A and B are no further apart than known-good runs"
            )
        elif not max(p.a, p.b) <= p.bound.oracle:
            found.append(
                f"{where}: A and B agree, and both are further from float64 than the bound "
                f"({max(p.a, p.b):.3g} > {p.bound.oracle:.3g})"
            )
    return tuple(found)
